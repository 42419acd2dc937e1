#pragma once

#include <cstdint>
#include <vector>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

enum class WindowOrder : std::uint8_t {
  random,     // every window starts anywhere, independent of all others
  shuffled,   // windows that follow each other without overlap, each once an epoch, in a new order every epoch
  continued,  // row b of a batch goes on where row b of the batch before ended, in a stretch of the tokens of its own
};

// Where the window of each training sample starts. Samples are numbered through all steps and ranks (step * batch + row), so
// the order depends neither on the number of ranks nor on where a run was resumed.
class WindowSampler {
 public:
  // A window is `length` tokens and the one after them. The batch size, of all ranks together, is for WindowOrder::continued.
  WindowSampler(std::int64_t num_tokens, std::int64_t length, WindowOrder order, std::uint64_t seed,
                std::int64_t batch_size = 1);

  std::int64_t start(std::int64_t sample) const;
  // Whether a model that carries its state may go on with it: false where rows start, and for the other orders.
  bool continues(std::int64_t sample) const;
  // Windows without overlap: an epoch reads as many tokens as there are, in any order.
  std::int64_t samples_per_epoch() const noexcept {
    return order_ == WindowOrder::random ? (num_tokens_ - 1) / length_ : num_windows_;
  }

 private:
  std::int64_t length_;
  WindowOrder order_;
  std::uint64_t seed_;
  std::int64_t batch_size_;
  std::int64_t num_tokens_;
  std::int64_t num_windows_;
};

// Up to `count` starts of windows at equal distances from token 0 on, for validation.
std::vector<std::int64_t> evenly_spaced_windows(std::int64_t num_tokens, std::int64_t length, std::int64_t count);

}  // namespace data
}  // namespace trireme
