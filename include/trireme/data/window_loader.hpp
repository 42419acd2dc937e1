#pragma once

#include <cstdint>
#include <span>

#include "trireme/data/batch_share.hpp"
#include "trireme/data/token_batch.hpp"
#include "trireme/data/token_dataset.hpp"
#include "trireme/data/window_sampler.hpp"

namespace trireme::data {

// One row for each start.
TokenBatch read_windows(const TokenDataset& dataset, std::span<const std::int64_t> starts, std::int64_t length);

struct WindowLoaderOptions {
  std::int64_t batch_size = 16;       // samples of a step, all ranks together
  std::int64_t micro_batch_size = 0;  // samples of one rank that are computed at once; 0: all of its share
  std::int64_t length = 256;          // tokens of a window
  WindowOrder order = WindowOrder::random;
  std::uint64_t seed = 1;
  int index = 0;  // which of `count` equal shares of every batch this rank reads
  int count = 1;
};

// Reads this rank's micro-batches of every step. It keeps no position: any step can be asked for, in any order.
class WindowLoader {
 public:
  WindowLoader(TokenDataset dataset, const WindowLoaderOptions& options);

  std::int64_t num_micro_batches() const { return share_.num_micro_batches(); }  // of a step
  TokenBatch load(std::int64_t step, std::int64_t micro_batch = 0) const;

 private:
  TokenDataset dataset_;
  BatchShare share_;
  WindowSampler sampler_;
  std::int64_t length_;
};

}  // namespace trireme::data
