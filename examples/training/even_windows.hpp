#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trireme/data/loaders/window_loader.hpp"
#include "trireme/data/loaders/window_sampler.hpp"

// Windows at even distances in a text, with which language models are validated.
struct EvenWindows {
  static constexpr std::int64_t most = 64;

  trireme::data::TokenDataset tokens;
  std::int64_t length;
  std::vector<std::int64_t> starts = trireme::data::evenly_spaced_windows(tokens.size(), length, most);

  std::int64_t size() const { return std::ssize(starts); }
  trireme::data::TokenBatch collate(std::span<const std::int64_t> indices, std::int64_t first_sample) const {
    std::vector<std::int64_t> chosen;
    for (const std::int64_t index : indices) chosen.push_back(starts[static_cast<std::size_t>(index)]);
    trireme::data::TokenBatch batch = trireme::data::read_windows(tokens, chosen, length);
    batch.first_sample = first_sample;
    return batch;
  }
};
