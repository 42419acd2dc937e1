#include "parallel/hooks/top_k_selection.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>

namespace trireme::parallel {
namespace {

constexpr std::size_t least_sample = 4096;

// The bits of a float without its sign, as an integer: ordered as the magnitudes are.
std::uint32_t magnitude(float value) { return std::bit_cast<std::uint32_t>(value) & 0x7FFF'FFFF; }

// A magnitude that probably somewhat more than `count` elements reach.
std::uint32_t sample_threshold(std::span<const float> values, std::size_t count) {
  const std::size_t stride = std::max<std::size_t>(1, values.size() / std::max(least_sample, values.size() / 100));
  std::vector<std::uint32_t> sample;
  sample.reserve(values.size() / stride + 1);
  for (std::size_t index = 0; index < values.size(); index += stride) sample.push_back(magnitude(values[index]));
  const double expected = static_cast<double>(count) / static_cast<double>(stride);
  const auto rank = static_cast<std::size_t>(1.2 * expected + 8);
  if (rank >= sample.size()) return 0;
  std::ranges::nth_element(sample, sample.begin() + static_cast<std::ptrdiff_t>(rank), std::greater());
  return sample[rank];
}

std::vector<std::uint32_t> reaching(std::span<const float> values, std::uint32_t threshold, std::size_t expected) {
  std::vector<std::uint32_t> indices;
  indices.reserve(expected);
  std::array<std::uint32_t, 1024> block;
  for (std::size_t begin = 0; begin < values.size(); begin += block.size()) {
    const std::size_t end = std::min(values.size(), begin + block.size());
    std::size_t found = 0;
    for (std::size_t index = begin; index < end; ++index) {  // without a branch
      block[found] = static_cast<std::uint32_t>(index);
      found += magnitude(values[index]) >= threshold ? 1 : 0;
    }
    indices.insert(indices.end(), block.begin(), block.begin() + static_cast<std::ptrdiff_t>(found));
  }
  return indices;
}

}  // namespace

std::vector<std::uint32_t> largest_elements(std::span<const float> values, std::size_t count) {
  std::vector<std::uint32_t> indices = reaching(values, sample_threshold(values, count), 2 * count);
  if (indices.size() < count) indices = reaching(values, 0, values.size());
  if (indices.size() == count) return indices;

  std::vector<std::uint32_t> magnitudes;
  magnitudes.reserve(indices.size());
  for (const std::uint32_t index : indices) magnitudes.push_back(magnitude(values[index]));
  const auto last = magnitudes.begin() + static_cast<std::ptrdiff_t>(count) - 1;
  std::ranges::nth_element(magnitudes, last, std::greater());
  const std::uint32_t cut = *last;
  auto equal = std::count(magnitudes.begin(), last + 1, cut);  // how many of the equal ones are selected
  std::erase_if(indices, [&](std::uint32_t index) {
    const std::uint32_t own = magnitude(values[index]);
    return own < cut || (own == cut && equal-- <= 0);
  });
  return indices;
}

}  // namespace trireme::parallel
