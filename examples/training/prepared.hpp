#pragma once

#include <cstdint>
#include <span>

// A dataset that applies `prepare` to its batches.
template <typename Dataset, typename Prepare>
struct Prepared {
  const Dataset* dataset;
  const Prepare* prepare;

  std::int64_t size() const { return dataset->size(); }
  auto collate(std::span<const std::int64_t> indices, std::int64_t first_sample) const {
    return (*prepare)(dataset->collate(indices, first_sample));
  }
};
