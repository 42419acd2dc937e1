#include "trireme/autograd/shard_map.hpp"

#include <algorithm>
#include <utility>

#include "trireme/core/collectives.hpp"
#include "trireme/core/error.hpp"

namespace trireme {
namespace {

constexpr std::int64_t grain = 16;  // elements; collectives cut at its multiples

std::int64_t end_of(const ParameterInfo& parameter) { return parameter.offset + parameter.numel; }

}  // namespace

ShardMap::ShardMap(FlatStore& store, std::int64_t slice_bytes, std::span<const std::int64_t> parameter_bytes) {
  require(slice_bytes > 0, "slice_bytes must be above 0, got {}", slice_bytes);
  Block block;
  std::int64_t filled = 0;  // bytes of the block
  const auto finish = [&] {
    if (block.parameters.empty()) return;
    const ParameterInfo& first = store.parameter(block.parameters.front());
    const Range range{first.offset, end_of(store.parameter(block.parameters.back()))};
    const std::int64_t pieces = std::max<std::int64_t>(1, (filled + slice_bytes - 1) / slice_bytes);
    const std::int64_t grains = (range.count() + grain - 1) / grain;
    for (std::int64_t piece = 0; piece < pieces; ++piece) {
      const auto bound = [&](std::int64_t number) {
        return std::min(range.end, range.begin + grains * number / pieces * grain);
      };
      if (bound(piece) < bound(piece + 1)) slices_.push_back({bound(piece), bound(piece + 1)});
    }
    block.slices_end = slices_.size();
    blocks_.push_back(std::exchange(block, {}));
    filled = 0;
  };
  std::size_t position = 0;
  for (const int index : store.layout()) {
    const ParameterInfo& parameter = store.parameter(index);
    if (!parameter.trainable) break;  // frozen ones come last
    const std::int64_t bytes = parameter_bytes[position++];
    const bool tied = !parameter.tied_ranks.empty();
    if (tied || filled + bytes > slice_bytes) finish();
    block.parameters.push_back(index);
    filled += bytes;
    if (tied || filled >= slice_bytes / 16) finish();
  }
  finish();
}

std::vector<Range> ShardMap::of(int rank, int ranks) const {
  std::vector<Range> parts;
  for (const Range& slice : slices_) {
    const Range part = part_of(slice.count(), rank, ranks);
    parts.push_back({slice.begin + part.begin, slice.begin + part.end});
  }
  return parts;
}

std::vector<std::int64_t> ShardMap::bounds(int ranks) const {
  std::vector<std::int64_t> begins;
  for (const Range& slice : slices_) {
    for (int rank = 0; rank < ranks; ++rank) {
      const Range part = part_of(slice.count(), rank, ranks);
      if (part.count() > 0) begins.push_back(slice.begin + part.begin);
    }
  }
  return begins;
}

}  // namespace trireme
