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

// One row for each start.
TokenBatch read_windows(const TokenDataset& dataset, std::span<const std::int64_t> starts, std::int64_t length);

struct WindowLoaderOptions {
  BatchOptions batch = {};
  std::int64_t length = 256;  // tokens of a window
  WindowOrder order = WindowOrder::random;
};

// Reads this rank's micro-batches of every step. It keeps no position: any step can be asked for, in any order.
class WindowLoader {
 public:
  WindowLoader(TokenDataset dataset, const WindowLoaderOptions& options);

  std::int64_t num_micro_batches() const { return share_.num_micro_batches(); }  // of a step
  std::int64_t batch_size() const { return share_.batch_size(); }                // samples of a step, all ranks together
  std::int64_t tokens_per_sample() const { return length_; }
  std::int64_t samples_per_epoch() const { return sampler_.samples_per_epoch(); }  // windows without overlap
  std::int64_t steps_per_epoch() const;                                            // rounded up
  std::string content() const { return content_of(dataset_); }
  // A step or micro-batch that does not exist throws Error.
  TokenBatch load(std::int64_t step, std::int64_t micro_batch = 0) const;

 private:
  TokenDataset dataset_;
  BatchShare share_;
  WindowSampler sampler_;
  std::int64_t length_;
};

}  // namespace data
}  // namespace trireme
