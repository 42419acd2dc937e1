#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "trireme/core/export.hpp"
#include "trireme/data/loaders/window_sampler.hpp"
#include "trireme/data/sources/batch_options.hpp"
#include "trireme/data/sources/batch_share.hpp"
#include "trireme/data/text/token_batch.hpp"
#include "trireme/data/text/token_dataset.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// Reads one row for each start. A row has `length` tokens, and as targets the tokens one place further on.
TokenBatch read_windows(const TokenDataset& dataset, std::span<const std::int64_t> starts, std::int64_t length);

struct WindowLoaderOptions {
  BatchOptions batch = {};
  std::int64_t length = 256;  // tokens of a window
  WindowOrder order = WindowOrder::random;
};

// Reads this rank's micro-batches of every step, which are windows of a text. The loader has no state: steps can be loaded in
// any order.
class WindowLoader {
 public:
  // Throws Error if ranks or micro-batches can't share a batch equally, for a text that is too short, and for
  // WindowOrder::continued with batches of several sizes: each of its rows has its own part of the text.
  WindowLoader(TokenDataset dataset, const WindowLoaderOptions& options);

  std::int64_t num_micro_batches() const { return share_.num_micro_batches(); }  // of a step
  std::int64_t batch_size() const { return share_.batch_size(); }                // samples of step 0, over all ranks
  std::int64_t tokens_per_sample() const { return length_; }
  std::int64_t samples_per_epoch() const { return sampler_.samples_per_epoch(); }  // how many windows fit without overlap
  std::int64_t steps_per_epoch() const { return share_.steps_of_samples(samples_per_epoch()); }  // of the first, rounded up
  std::int64_t samples_of_steps(std::int64_t steps) const { return share_.samples_of_steps(steps); }
  std::string content() const { return content_of(dataset_); }
  // Throws Error for a step or micro-batch that does not exist.
  TokenBatch load(std::int64_t step, std::int64_t micro_batch = 0) const;

 private:
  TokenDataset dataset_;
  BatchShare share_;
  WindowSampler sampler_;
  std::int64_t length_;
};

}  // namespace data
}  // namespace trireme
