#pragma once

#include <concepts>
#include <cstdint>

#include "trireme/core/export.hpp"
#include "trireme/ops/base/extent2d.hpp"

namespace trireme TRIREME_EXPORT {

enum class InterpolateMode : std::uint8_t { nearest, bilinear };

// How many times as many pixels; one number stands for both: scale = 2.
struct Scale2d {
  double height = 0;
  double width = 0;

  Scale2d() = default;
  Scale2d(std::convertible_to<double> auto both) : height(static_cast<double>(both)), width(height) {}
  Scale2d(double of_height, double of_width) : height(of_height), width(of_width) {}
};

// The size of the result, or its scale: one of both. A scaled size is rounded down. .size = {32, 48}, .scale = 2.
struct InterpolateOptions {
  ops::Extent2d size = {};
  Scale2d scale = {};
  InterpolateMode mode = InterpolateMode::nearest;
  bool align_corners = false;  // of bilinear: the corner pixels lie on those of x; otherwise the corners of the image do
};

}  // namespace trireme
