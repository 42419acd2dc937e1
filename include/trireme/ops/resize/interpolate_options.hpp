#pragma once

#include <concepts>
#include <cstdint>

#include "trireme/core/export.hpp"
#include "trireme/ops/base/extent2d.hpp"

namespace trireme TRIREME_EXPORT {

enum class InterpolateMode : std::uint8_t { nearest, bilinear };

// The factors by which height and width grow; one number stands for both: .scale = 2.
struct Scale2d {
  double height = 0;
  double width = 0;

  Scale2d() = default;
  Scale2d(std::convertible_to<double> auto both) : height(static_cast<double>(both)), width(height) {}
  Scale2d(double of_height, double of_width) : height(of_height), width(of_width) {}
};

// Set either the size of the result or its scale: .size = {32, 48} or .scale = 2. A scaled size is rounded down.
struct InterpolateOptions {
  ops::Extent2d size = {};
  Scale2d scale = {};
  InterpolateMode mode = InterpolateMode::nearest;
  bool align_corners = false;  // for bilinear; true aligns the centers of the corner pixels, false the corners of the images
};

}  // namespace trireme
