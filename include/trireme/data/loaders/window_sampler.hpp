#pragma once

#include <cstdint>
#include <vector>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

enum class WindowOrder : std::uint8_t {
  random,     // each window starts at a random token, independently of other windows
  shuffled,   // windows without overlap, each once per epoch, in a new order every epoch
  continued,  // row b of a batch continues row b of the previous batch; each row has its own part of the tokens
};

// Chooses where the window of each training sample starts. Samples are numbered over all steps and ranks (step * batch + row),
// so the order does not depend on the number of ranks or on resuming.
class WindowSampler {
 public:
  // A window takes length + 1 tokens: the last token is only a target. batch_size (over all ranks) is for
  // WindowOrder::continued.
  WindowSampler(std::int64_t num_tokens, std::int64_t length, WindowOrder order, std::uint64_t seed,
                std::int64_t batch_size = 1);

  std::int64_t start(std::int64_t sample) const;
  // Whether a model may keep its state from the previous step. False at the start of a row, and for all orders but
  // `continued`.
  bool continues(std::int64_t sample) const;
  // How many windows fit without overlap. With every order, an epoch reads about as many tokens as there are.
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

// Starts of up to `count` evenly spaced windows, the first at token 0, for validation.
std::vector<std::int64_t> evenly_spaced_windows(std::int64_t num_tokens, std::int64_t length, std::int64_t count);

}  // namespace data
}  // namespace trireme
