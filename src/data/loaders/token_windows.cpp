#include "trireme/data/loaders/token_windows.hpp"

#include <utility>
#include <vector>

#include "trireme/data/loaders/window_loader.hpp"
#include "trireme/data/loaders/window_sampler.hpp"

namespace trireme::data {

TokenWindows::TokenWindows(TokenDataset tokens, std::int64_t length)
    : tokens_(std::move(tokens)),
      length_(length),
      size_(WindowSampler(tokens_.size(), length, WindowOrder::shuffled, 0).samples_per_epoch()) {}

TokenBatch TokenWindows::collate(std::span<const std::int64_t> indices, std::int64_t first_sample) const {
  std::vector<std::int64_t> starts;
  for (const std::int64_t index : indices) starts.push_back(index * length_);
  TokenBatch batch = read_windows(tokens_, starts, length_);
  batch.first_sample = first_sample;
  return batch;
}

}  // namespace trireme::data
