#include "trireme/data/loaders/window_sampler.hpp"

#include <algorithm>

#include "trireme/core/error.hpp"
#include "trireme/core/philox.hpp"
#include "trireme/data/sources/permutation.hpp"

namespace trireme::data {
namespace {

constexpr std::uint64_t window_stream = hash_name("trireme.data.window");

void check_length(std::int64_t num_tokens, std::int64_t length) {
  require(length > 0, "a window has at least one token, got {}", length);
  require(num_tokens > length,
          "{} tokens are too few: a window of {} tokens and the one after them takes {}; use a longer text or a shorter window",
          num_tokens, length, length + 1);
}

}  // namespace

WindowSampler::WindowSampler(std::int64_t num_tokens, std::int64_t length, WindowOrder order, std::uint64_t seed,
                             std::int64_t batch_size)
    : length_(length), order_(order), seed_(seed), batch_size_(batch_size), num_tokens_(num_tokens) {
  require(batch_size > 0, "a batch has at least one row, got {}", batch_size);
  check_length(num_tokens, length);
  switch (order) {
    case WindowOrder::random: num_windows_ = num_tokens - length; break;
    case WindowOrder::shuffled: num_windows_ = (num_tokens - 1) / length; break;
    case WindowOrder::continued:
      require(num_tokens / batch_size > length,
              "{} tokens are too few for {} rows: {} tokens of a row do not hold a window of {} and the one after them; use a "
              "longer text, a smaller batch or a shorter window",
              num_tokens, batch_size, num_tokens / batch_size, length);
      num_windows_ = (num_tokens / batch_size - 1) / length * batch_size;
      break;
  }
}

std::int64_t WindowSampler::start(std::int64_t sample) const {
  require(sample >= 0, "samples are numbered from 0, got {}", sample);
  if (order_ == WindowOrder::random) {
    const double u = philox_uniform(seed_, window_stream, static_cast<std::uint64_t>(sample));
    return std::min(static_cast<std::int64_t>(u * static_cast<double>(num_windows_)), num_windows_ - 1);
  }
  if (order_ == WindowOrder::continued) {
    const std::int64_t windows_of_row = num_windows_ / batch_size_;
    return sample % batch_size_ * (num_tokens_ / batch_size_) + sample / batch_size_ % windows_of_row * length_;
  }
  const Permutation order(num_windows_, seed_, static_cast<std::uint64_t>(sample / num_windows_));
  return length_ * order(sample % num_windows_);
}

bool WindowSampler::continues(std::int64_t sample) const {
  return order_ == WindowOrder::continued && sample % num_windows_ >= batch_size_;
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
