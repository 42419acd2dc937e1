#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace trireme::parallel {

// The indices, ascending, of the `count` elements of largest magnitude; of equal ones the first. A nan is larger than all else.
// As Lin et al. 2017, arXiv 1712.01887: a threshold from a sample, then an exact cut of what lies above it.
std::vector<std::uint32_t> largest_elements(std::span<const float> values, std::size_t count);

}  // namespace trireme::parallel
