#include "ops/pooling/pooling_windows.hpp"

#include <algorithm>
#include <limits>

#include "ops/base/check.hpp"

namespace trireme::ops {
namespace {

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
  return last * s.stride >= size + s.padding ? last : last + 1;  // no window begins in the padding after the image
}

PoolDim sliding_dim(std::string_view op, std::int64_t size, const Sliding& s) {
  const std::int64_t windows = num_windows(op, size, s);
  require(std::max({size, s.reach(), s.stride, s.dilation}) < most_pool_pixels,
          "{}: {} pixels along a side, windows that span {}, a stride of {} or a dilation of {} are too many, {} are the most",
          op, size, s.reach(), s.stride, s.dilation, most_pool_pixels - 1);
  const auto number = [](std::int64_t value) { return static_cast<std::int32_t>(value); };
  const PoolDim dim{.size = number(size),
                    .windows = number(windows),
                    .kernel = number(s.kernel),
                    .stride = number(s.stride),
                    .padding = number(s.padding),
                    .dilation = number(s.dilation),
                    .count_include_pad = s.count_include_pad};
  for (std::int32_t window = 0; window < dim.windows; ++window) {
    require(dim.span(window).count > 0, "{}: a window of {} with dilation {} and padding {} holds no pixel of {}", op, s.kernel,
            s.dilation, s.padding, size);
  }
  return dim;
}

PoolDim adaptive_dim(std::string_view op, std::int64_t size, std::int64_t windows) {
  require(size > 0 && windows > 0, "{}: {} pixels cannot become {}", op, size, windows);
  require(size < most_pool_pixels && windows < most_pool_pixels, "{}: {} pixels that become {} are too many, {} are the most",
          op, size, windows, most_pool_pixels - 1);
  return {.size = static_cast<std::int32_t>(size), .windows = static_cast<std::int32_t>(windows)};
}

std::int64_t most_pixels(const PoolDim& dim) {
  std::int64_t most = 0;
  for (std::int32_t window = 0; window < dim.windows; ++window) most = std::max<std::int64_t>(most, dim.span(window).count);
  return most;
}

void require_images(std::string_view op, const Shape& x, const Shape& y) {
  require(x.size() == 4 && y.size() == 4 && x[0] == y[0] && x[3] == y[3],
          "{}: {} and {} need to be [batch, height, width, channels] with the same batch and channels", op, x, y);
}

template <typename Options>
PoolWindows windows_of(std::string_view op, const Shape& x, const Shape& y, const Options& options) {
  require_images(op, x, y);
  const PoolWindows windows{.rows = sliding_dim(op, x[1], along(options, &Extent2d::height)),
                            .columns = sliding_dim(op, x[2], along(options, &Extent2d::width))};
  require_shape(op, "the result", y, {x[0], windows.rows.windows, windows.columns.windows, x[3]});
  return windows;
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
  return {.rows = adaptive_dim(op, x[1], y[1]), .columns = adaptive_dim(op, x[2], y[2])};
}

void require_places(std::string_view op, const PoolWindows& windows) {
  const std::int64_t rows = most_pixels(windows.rows);
  const std::int64_t columns = most_pixels(windows.columns);
  constexpr std::int64_t most = std::int64_t{1} + std::numeric_limits<std::int32_t>::max();
  require(rows * columns <= most, "{}: windows of {} x {} pixels are too large, {} pixels are the most", op, rows, columns,
          most);
}

}  // namespace trireme::ops
