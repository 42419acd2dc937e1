#include "trireme/autograd/operations/pooling.hpp"

#include "precision/instantiate.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"

namespace trireme {
namespace {

ops::Extent2d pixels_of(std::string_view op, const Shape& x) {
  require(x.size() == 4, "{}: x {} needs [batch, height, width, channels]", op, x);
  return {x[1], x[2]};
}

Shape with_pixels(const Shape& x, const ops::Extent2d& pixels) { return {x[0], pixels.height, pixels.width, x[3]}; }

struct MaxPool2d {
  static constexpr std::string_view name = "max_pool2d";
  ops::Pool2dOptions options;

  void forward(const auto& x, auto& y, auto& argmax) const { ops::max_pool2d(x, options, y, argmax); }
  void backward(const auto& dy, const auto& argmax, const auto& dx) const {
    dx.contribute([&](auto& out, bool accumulate) { ops::max_pool2d_backward(dy, argmax, options, out, accumulate); });
  }
  void describe(Attributes& to) const {
    to["kernel"] = std::vector{options.kernel.height, options.kernel.width};
    to["stride"] = std::vector{options.stride.height, options.stride.width};
    to["padding"] = std::vector{options.padding.height, options.padding.width};
    to["dilation"] = std::vector{options.dilation.height, options.dilation.width};
    to["ceil_mode"] = std::int64_t{options.ceil_mode};
  }
};

struct AvgPool2d {
  static constexpr std::string_view name = "avg_pool2d";
  ops::AvgPool2dOptions options;

  void forward(const auto& x, auto& y) const { ops::avg_pool2d(x, options, y); }
  void backward(const auto& dy, const auto& dx) const {
    dx.contribute([&](auto& out, bool accumulate) { ops::avg_pool2d_backward(dy, options, out, accumulate); });
  }
  void describe(Attributes& to) const {
    to["kernel"] = std::vector{options.kernel.height, options.kernel.width};
    to["stride"] = std::vector{options.stride.height, options.stride.width};
    to["padding"] = std::vector{options.padding.height, options.padding.width};
    to["ceil_mode"] = std::int64_t{options.ceil_mode};
    to["count_include_pad"] = std::int64_t{options.count_include_pad};
  }
};

struct AdaptiveMaxPool2d {
  static constexpr std::string_view name = "adaptive_max_pool2d";
  ops::Extent2d output;

  void forward(const auto& x, auto& y, auto& argmax) const { ops::adaptive_max_pool2d(x, y, argmax); }
  void backward(const auto& dy, const auto& argmax, const auto& dx) const {
    dx.contribute([&](auto& out, bool accumulate) { ops::adaptive_max_pool2d_backward(dy, argmax, out, accumulate); });
  }
  void describe(Attributes& to) const { to["output"] = std::vector{output.height, output.width}; }
};

struct AdaptiveAvgPool2d {
  static constexpr std::string_view name = "adaptive_avg_pool2d";
  ops::Extent2d output;

  void forward(const auto& x, auto& y) const { ops::adaptive_avg_pool2d(x, y); }
  void backward(const auto& dy, const auto& dx) const {
    dx.contribute([&](auto& out, bool accumulate) { ops::adaptive_avg_pool2d_backward(dy, out, accumulate); });
  }
  void describe(Attributes& to) const { to["output"] = std::vector{output.height, output.width}; }
};

template <typename T, typename D>
auto maxima(const Shape& y) {
  return std::tuple(Result<T, D>{y}, internal(Result<std::int32_t, D>{y}));
}

}  // namespace

template <typename T, typename D>
Variable<T, D> max_pool2d(const Variable<T, D>& x, const ops::Pool2dOptions& options) {
  const auto results = [&] {
    const auto output = ops::max_pool2d_extent(pixels_of("max_pool2d", x.shape()), options);
    return maxima<T, D>(with_pixels(x.shape(), output));
  };
  return record(MaxPool2d{options}, results, x);
}

template <typename T, typename D>
Variable<T, D> avg_pool2d(const Variable<T, D>& x, const ops::AvgPool2dOptions& options) {
  const auto result = [&] {
    const auto output = ops::avg_pool2d_extent(pixels_of("avg_pool2d", x.shape()), options);
    return Result<T, D>{with_pixels(x.shape(), output)};
  };
  return record(AvgPool2d{options}, result, x);
}

template <typename T, typename D>
Variable<T, D> adaptive_max_pool2d(const Variable<T, D>& x, const ops::Extent2d& output) {
  const auto results = [&] {
    pixels_of("adaptive_max_pool2d", x.shape());
    return maxima<T, D>(with_pixels(x.shape(), output));
  };
  return record(AdaptiveMaxPool2d{output}, results, x);
}

template <typename T, typename D>
Variable<T, D> adaptive_avg_pool2d(const Variable<T, D>& x, const ops::Extent2d& output) {
  const auto result = [&] {
    pixels_of("adaptive_avg_pool2d", x.shape());
    return Result<T, D>{with_pixels(x.shape(), output)};
  };
  return record(AdaptiveAvgPool2d{output}, result, x);
}

TRIREME_INSTANTIATE(FLOATS, max_pool2d, TRIREME_DEVICE)
TRIREME_INSTANTIATE(FLOATS, avg_pool2d, TRIREME_DEVICE)
TRIREME_INSTANTIATE(FLOATS, adaptive_max_pool2d, TRIREME_DEVICE)
TRIREME_INSTANTIATE(FLOATS, adaptive_avg_pool2d, TRIREME_DEVICE)

}  // namespace trireme
