#include "parallel/hooks/top_k_selection.hpp"

#include <algorithm>
#include <bit>
#include <functional>

namespace trireme::parallel {
namespace {

constexpr std::size_t least_sample = 4096;

// Order of magnitude as integers: the bits of a float without its sign.
std::uint32_t magnitude(float value) { return std::bit_cast<std::uint32_t>(value) & 0x7FFF'FFFF; }

// A magnitude that somewhat more than `count` elements reach, probably.
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

std::vector<std::uint32_t> reaching(std::span<const float> values, std::uint32_t threshold) {
  std::vector<std::uint32_t> indices(values.size());
  std::size_t found = 0;
  for (std::size_t index = 0; index < values.size(); ++index) {  // without a branch
    indices[found] = static_cast<std::uint32_t>(index);
    found += magnitude(values[index]) >= threshold ? 1 : 0;
  }
  indices.resize(found);
  return indices;
}

}  // namespace

std::vector<std::uint32_t> largest_elements(std::span<const float> values, std::size_t count) {
  std::vector<std::uint32_t> indices = reaching(values, sample_threshold(values, count));
  if (indices.size() < count) indices = reaching(values, 0);
  const auto before = [&](std::uint32_t a, std::uint32_t b) {
    const std::uint32_t left = magnitude(values[a]);
    const std::uint32_t right = magnitude(values[b]);
    return left != right ? left > right : a < b;
  };
  if (indices.size() > count) {
    std::ranges::nth_element(indices, indices.begin() + static_cast<std::ptrdiff_t>(count), before);
    indices.resize(count);
    std::ranges::sort(indices);
  }
  return indices;
}

}  // namespace trireme::parallel
