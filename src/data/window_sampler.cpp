#include "trireme/data/window_sampler.hpp"

#include <algorithm>

#include "trireme/core/error.hpp"
#include "trireme/core/philox.hpp"
#include "trireme/data/permutation.hpp"

namespace trireme::data {
namespace {

constexpr std::uint64_t stream = hash_name("trireme.data.window");

void check_length(std::int64_t num_tokens, std::int64_t length) {
  require(length > 0, "a window has at least one token, got {}", length);
  require(num_tokens > length,
          "{} tokens are too few: a window of {} tokens and the one after them takes {}; use a longer text or a shorter window",
          num_tokens, length, length + 1);
}

}  // namespace

WindowSampler::WindowSampler(std::int64_t num_tokens, std::int64_t length, WindowOrder order, std::uint64_t seed)
    : length_(length), order_(order), seed_(seed) {
  check_length(num_tokens, length);
  num_windows_ = order == WindowOrder::random ? num_tokens - length : (num_tokens - 1) / length;
}

std::int64_t WindowSampler::start(std::int64_t sample) const {
  require(sample >= 0, "samples are numbered from 0, got {}", sample);
  if (order_ == WindowOrder::random) {
    const double u = philox_uniform(seed_, stream, static_cast<std::uint64_t>(sample));
    return std::min(static_cast<std::int64_t>(u * static_cast<double>(num_windows_)), num_windows_ - 1);
  }
  const Permutation order(num_windows_, seed_, static_cast<std::uint64_t>(sample / num_windows_));
  return length_ * order(sample % num_windows_);
}

std::vector<std::int64_t> evenly_spaced_windows(std::int64_t num_tokens, std::int64_t length, std::int64_t count) {
  check_length(num_tokens, length);
  require(count > 0, "at least one window is needed, got {}", count);
  const std::int64_t stride = std::max<std::int64_t>(1, num_tokens / count);
  std::vector<std::int64_t> starts;
  for (std::int64_t start = 0; start + length < num_tokens && std::ssize(starts) < count; start += stride)
    starts.push_back(start);
  return starts;
}

}  // namespace trireme::data
