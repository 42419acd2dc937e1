#pragma once

#include <cstdint>
#include <vector>

namespace trireme::data {

enum class WindowOrder : std::uint8_t {
  random,    // every window starts anywhere, independent of all others
  shuffled,  // windows that follow each other without overlap, each once an epoch, in a new order every epoch
};

// Where the window of each training sample starts. Samples are numbered through all steps and ranks (step * batch + row), so
// the order depends neither on the number of ranks nor on where a run was resumed.
class WindowSampler {
 public:
  // A window is `length` tokens and the one after them.
  WindowSampler(std::int64_t num_tokens, std::int64_t length, WindowOrder order, std::uint64_t seed);

  std::int64_t start(std::int64_t sample) const;
  std::int64_t samples_per_epoch() const noexcept { return num_windows_; }

 private:
  std::int64_t length_;
  WindowOrder order_;
  std::uint64_t seed_;
  std::int64_t num_windows_;
};

// Up to `count` starts of windows at equal distances from token 0 on, for validation.
std::vector<std::int64_t> evenly_spaced_windows(std::int64_t num_tokens, std::int64_t length, std::int64_t count);

}  // namespace trireme::data
