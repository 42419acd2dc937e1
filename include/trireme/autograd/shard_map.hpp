#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "trireme/autograd/flat_store.hpp"
#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

// Which rank owns which part of a store's trainable range, if ranks share the work of the optimizer. The range is cut into
// slices, and every rank owns a part of each slice. The slices depend only on the parameters and the given sizes, not on
// buckets.
//
// A slice ends after the parameter with which its size reaches slice_bytes / 16, or before a parameter that would make the
// slice larger than slice_bytes. A parameter that is larger than slice_bytes is cut into equal slices of its own, at multiples
// of 16 elements. A parameter that several stages hold lies in slices of its own, so that all stages cut the parameter at the
// same places.
class ShardMap {
 public:
  // Neighbouring parameters whose slices hold no other parameter: a bucket takes all of these parameters or none.
  struct Block {
    std::vector<int> parameters;
    std::size_t slices_end = 0;  // number of slices of this block and all blocks before
  };

  // parameter_bytes: the sizes of the trainable parameters in the order of the store. Ranks that hold parts of different sizes
  // must agree on the sizes first, so that they make the same blocks.
  ShardMap(FlatStore& store, std::int64_t slice_bytes, std::span<const std::int64_t> parameter_bytes);

  std::span<const Range> slices() const { return slices_; }  // ascending
  std::span<const Block> blocks() const { return blocks_; }
  std::vector<Range> of(int rank, int ranks) const;   // the rank's part of each slice; some may be empty
  std::vector<std::int64_t> bounds(int ranks) const;  // where non-empty parts begin, ascending

 private:
  std::vector<Range> slices_;
  std::vector<Block> blocks_;
};

}  // namespace trireme
