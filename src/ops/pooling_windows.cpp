#include "ops/pooling_windows.hpp"

#include <algorithm>

#include "ops/check.hpp"

namespace trireme::ops {
namespace {

// The options along one dim.
struct Sliding {
  std::int64_t kernel, stride, padding, dilation;
  bool ceil_mode;
  bool count_include_pad;

  std::int64_t reach() const { return dilation * (kernel - 1) + 1; }
};

using Dim = std::int64_t Extent2d::*;

std::int64_t stride_of(const Extent2d& stride, const Extent2d& kernel, Dim dim) {
  return stride.*dim == 0 ? kernel.*dim : stride.*dim;
}
Sliding along(const Pool2dOptions& options, Dim dim) {
  return {.kernel = options.kernel.*dim,
          .stride = stride_of(options.stride, options.kernel, dim),
          .padding = options.padding.*dim,
          .dilation = options.dilation.*dim,
          .ceil_mode = options.ceil_mode,
          .count_include_pad = false};
}
Sliding along(const AvgPool2dOptions& options, Dim dim) {
  return {.kernel = options.kernel.*dim,
          .stride = stride_of(options.stride, options.kernel, dim),
          .padding = options.padding.*dim,
          .dilation = 1,
          .ceil_mode = options.ceil_mode,
          .count_include_pad = options.count_include_pad};
}

std::int64_t num_windows(std::string_view op, std::int64_t size, const Sliding& s) {
  require(s.kernel > 0 && s.stride > 0 && s.dilation > 0, "{}: kernel {}, stride {} and dilation {} need to be above 0", op,
          s.kernel, s.stride, s.dilation);
  require(s.padding >= 0 && s.padding <= s.reach() / 2,
          "{}: a padding of {} is not between 0 and half of the {} pixels that a window spans", op, s.padding, s.reach());
  const std::int64_t room = size + 2 * s.padding - s.reach() + (s.ceil_mode ? s.stride - 1 : 0);
  require(size > 0 && room >= 0, "{}: a kernel of {} with dilation {} does not fit {} pixels with padding {}", op, s.kernel,
          s.dilation, size, s.padding);
  const std::int64_t last = room / s.stride;
  return last * s.stride >= size + s.padding ? last : last + 1;  // no window begins in the padding behind the image
}

std::vector<PoolSpan> spans(std::string_view op, std::int64_t size, const Sliding& s) {
  std::vector<PoolSpan> result;
  for (std::int64_t i = 0, windows = num_windows(op, size, s); i < windows; ++i) {
    const std::int64_t first = i * s.stride - s.padding;
    const std::int64_t before = first < 0 ? (s.dilation - 1 - first) / s.dilation : 0;
    const std::int64_t begin = first + before * s.dilation;
    const std::int64_t count = std::min(s.kernel - before, (size - begin + s.dilation - 1) / s.dilation);
    require(count > 0, "{}: a window of {} with dilation {} and padding {} holds no pixel of {}", op, s.kernel, s.dilation,
            s.padding, size);
    result.push_back({begin, count, s.count_include_pad ? std::min(s.kernel, size + s.padding - first) : count});
  }
  return result;
}

std::vector<PoolSpan> adaptive_spans(std::string_view op, std::int64_t size, std::int64_t windows) {
  require(size > 0 && windows > 0, "{}: {} pixels cannot become {}", op, size, windows);
  std::vector<PoolSpan> result;
  for (std::int64_t i = 0; i < windows; ++i) {
    const std::int64_t begin = i * size / windows;
    const std::int64_t count = ((i + 1) * size + windows - 1) / windows - begin;
    result.push_back({begin, count, count});
  }
  return result;
}

void require_images(std::string_view op, const Shape& x, const Shape& y) {
  require(x.size() == 4 && y.size() == 4 && x[0] == y[0] && x[3] == y[3],
          "{}: {} and {} need to be [batch, height, width, channels] with the same batch and channels", op, x, y);
}

template <typename Options>
PoolWindows windows_of(std::string_view op, const Shape& x, const Shape& y, const Options& options) {
  require_images(op, x, y);
  const auto down = along(options, &Extent2d::height);
  const auto across = along(options, &Extent2d::width);
  require_shape(op, "the result", y, {x[0], num_windows(op, x[1], down), num_windows(op, x[2], across), x[3]});
  return {.rows = spans(op, x[1], down), .columns = spans(op, x[2], across), .dilation = {down.dilation, across.dilation}};
}

}  // namespace

Extent2d max_pool2d_extent(const Extent2d& input, const Pool2dOptions& options) {
  return {num_windows("max_pool2d", input.height, along(options, &Extent2d::height)),
          num_windows("max_pool2d", input.width, along(options, &Extent2d::width))};
}

Extent2d avg_pool2d_extent(const Extent2d& input, const AvgPool2dOptions& options) {
  return {num_windows("avg_pool2d", input.height, along(options, &Extent2d::height)),
          num_windows("avg_pool2d", input.width, along(options, &Extent2d::width))};
}

PoolWindows sliding_windows(std::string_view op, const Shape& x, const Shape& y, const Pool2dOptions& options) {
  return windows_of(op, x, y, options);
}

PoolWindows sliding_windows(std::string_view op, const Shape& x, const Shape& y, const AvgPool2dOptions& options) {
  return windows_of(op, x, y, options);
}

PoolWindows adaptive_windows(std::string_view op, const Shape& x, const Shape& y) {
  require_images(op, x, y);
  return {.rows = adaptive_spans(op, x[1], y[1]), .columns = adaptive_spans(op, x[2], y[2])};
}

}  // namespace trireme::ops
