#pragma once

#include <compare>
#include <cstdint>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

// Height and width in pixels; a single number stands for both: `.kernel = 3` is `.kernel = {3, 3}`.
struct Extent2d {
  constexpr Extent2d() = default;
  constexpr Extent2d(std::int64_t both) : height(both), width(both) {}
  constexpr Extent2d(std::int64_t h, std::int64_t w) : height(h), width(w) {}

  std::int64_t height = 0;
  std::int64_t width = 0;

  auto operator<=>(const Extent2d&) const = default;
};

}  // namespace ops
}  // namespace trireme
