#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace trireme::data {

// Which items share a bin of `capacity`, by their places: each, from the largest on, goes to the bin that it leaves the least
// room in (best-fit decreasing: Ding et al. 2024, arXiv 2404.10830). Sizes lie in [0, capacity].
std::vector<std::vector<std::size_t>> best_fit(std::span<const std::int64_t> sizes, std::int64_t capacity);

}  // namespace trireme::data
