#include "parallel/reduction/sharding.hpp"

#include <fmt/format.h>

#include <functional>
#include <utility>

#include "parallel/step/planes.hpp"

namespace trireme::parallel {
namespace {

// Sends new values, range after range.
class NewValues final : public Shard::Publication {
 public:
  using RangeOf = std::function<Range(std::size_t index)>;
  using Start = std::function<Pending(std::size_t index)>;

  NewValues(FlatStore& store, RangeOf range_of, Start start)
      : store_(store), range_of_(std::move(range_of)), start_(std::move(start)) {}

  void updated(std::size_t index) override {
    pending_.push_back(start_(index));
    comm::progress();
  }

  void finish() override {
    for (std::size_t index = 0; index < pending_.size(); ++index) {
      pending_[index].wait_on_stream();
      store_.refresh_compute_copy(range_of_(index));
    }
  }

 private:
  FlatStore& store_;
  RangeOf range_of_;
  Start start_;
  std::vector<Pending> pending_;
};

std::vector<Range> own_ranges(std::span<const OwnedRange> owned, int place) {
  std::vector<Range> ranges;
  for (const auto& [owner, range] : owned) ranges.push_back(owner == place ? range : Range{range.begin, range.begin});
  return ranges;
}

}  // namespace

SlicedShard::SlicedShard(FlatStore& store, const Group& group, ShardMap map, bool fixed_bits)
    : Shard(map.of(group.rank(), group.size()), fixed_bits, map.bounds(group.size())),
      store_(store),
      group_(group),
      map_(std::move(map)) {
  for (const ShardMap::Block& block : map_.blocks()) {
    for (std::size_t slice = names_.size(); slice < block.slices_end; ++slice) {
      names_.push_back(fmt::format("new values of slice {} ({} to {})", slice, store.parameter(block.parameters.front()).name,
                                   store.parameter(block.parameters.back()).name));
    }
  }
}

std::unique_ptr<Shard::Publication> SlicedShard::publish() {
  return std::make_unique<NewValues>(
      store_, [this](std::size_t slice) { return map_.slices()[slice]; },
      [this](std::size_t slice) {
        return with_values(store_, map_.slices()[slice], [&](auto values) { return group_.all_gather(values, names_[slice]); });
      });
}

void SlicedShard::sum_over_ranks(std::span<double> values) {
  group_.all_reduce(values, ReduceOp::sum, "parameter norms").wait_on_stream();
}

void SlicedShard::sum_over_ranks(std::span<float> values) {
  group_.all_reduce(values, ReduceOp::sum, "parts of a parameter").wait_on_stream();
}

OwnerShard::OwnerShard(FlatStore& store, const HookGroups& groups, std::vector<OwnedRange> owned)
    : Shard(own_ranges(owned, groups.place), false), store_(store), node_(groups.share), owned_(std::move(owned)) {}

std::unique_ptr<Shard::Publication> OwnerShard::publish() {
  return std::make_unique<NewValues>(
      store_, [this](std::size_t index) { return owned_[index].range; },
      [this](std::size_t index) {
        if (!node_) return Pending();
        const auto& [owner, range] = owned_[index];
        return with_values(store_, range, [&](auto values) { return node_->broadcast(values, owner, "new values"); });
      });
}

// One rank of a node updates each parameter; the others add zeros.
void OwnerShard::sum_over_ranks(std::span<double> values) {
  if (node_) node_->all_reduce(values, ReduceOp::sum, "parameter norms").wait_on_stream();
}

void OwnerShard::sum_over_ranks(std::span<float> values) {
  if (node_) node_->all_reduce(values, ReduceOp::sum, "parts of a parameter").wait_on_stream();
}

void OwnerShard::gather_gradients() {
  if (!node_) return;
  for (const auto& [owner, range] : owned_) {
    with_gradients(store_, range, [&](auto gradients) { node_->broadcast(gradients, owner, "gradients").wait_on_host(); });
  }
}

}  // namespace trireme::parallel
