#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace trireme::parallel {

// The indices, ascending, of the `count` elements of largest magnitude; of equal ones the first. nan is larger than any number.
// Finds a threshold from a sample, then selects exactly among the elements above it (Lin et al. 2017, arXiv 1712.01887).
std::vector<std::uint32_t> largest_elements(std::span<const float> values, std::size_t count);

}  // namespace trireme::parallel
