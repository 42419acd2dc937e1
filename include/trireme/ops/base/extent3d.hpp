#pragma once

#include <compare>
#include <cstdint>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

// Depth, height and width in voxels; a single number stands for all: `.kernel = 3` is `.kernel = {3, 3, 3}`.
struct Extent3d {
  constexpr Extent3d() = default;
  constexpr Extent3d(std::int64_t all) : depth(all), height(all), width(all) {}
  constexpr Extent3d(std::int64_t d, std::int64_t h, std::int64_t w) : depth(d), height(h), width(w) {}

  std::int64_t depth = 0;
  std::int64_t height = 0;
  std::int64_t width = 0;

  auto operator<=>(const Extent3d&) const = default;
};

}  // namespace ops
}  // namespace trireme
