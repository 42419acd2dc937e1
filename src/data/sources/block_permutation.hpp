#pragma once

#include <cstdint>

#include "trireme/data/sources/permutation.hpp"

namespace trireme::data {

// A shuffled order of [0, size) that reads neighbours together, and is never stored: blocks of `block` neighbours follow each
// other in a random order, and the elements of every `blocks_at_once` blocks are shuffled with each other. So a reader has few
// blocks open at any time.
class BlockPermutation {
 public:
  BlockPermutation(std::int64_t size, std::int64_t block, std::int64_t blocks_at_once, std::uint64_t seed, std::uint64_t epoch);

  std::int64_t operator()(std::int64_t position) const;

 private:
  std::int64_t block_at(std::int64_t slot) const;

  std::int64_t size_;
  std::int64_t block_;
  std::int64_t blocks_at_once_;
  std::int64_t num_blocks_;
  std::int64_t lacking_;     // elements that the last block has fewer than the others
  std::int64_t short_slot_;  // where the last block comes
  std::uint64_t seed_;
  std::uint64_t epoch_;
};

}  // namespace trireme::data
