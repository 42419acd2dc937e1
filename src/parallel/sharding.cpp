#include "parallel/sharding.hpp"

#include <fmt/format.h>

#include <utility>

#include "parallel/planes.hpp"

namespace trireme::parallel {
namespace {

class Gathers final : public Shard::Publication {
 public:
  Gathers(FlatStore& store, const Group& group, std::span<const Range> slices, std::span<const std::string> names)
      : store_(store), group_(group), slices_(slices), names_(names) {}

  void updated(std::size_t range) override {
    with_values(store_, slices_[range], [&](auto values) { pending_.push_back(group_.all_gather(values, names_[range])); });
    comm::progress();
  }

  void finish() override {
    for (std::size_t index = 0; index < pending_.size(); ++index) {
      pending_[index].wait_on_stream();
      store_.refresh_compute_copy(slices_[index]);
    }
  }

 private:
  FlatStore& store_;
  const Group& group_;
  std::span<const Range> slices_;
  std::span<const std::string> names_;
  std::vector<Pending> pending_;
};

}  // namespace

SlicedShard::SlicedShard(FlatStore& store, const Group& group, ShardMap map, bool fixed_bits)
    : Shard(map.of(group.rank(), group.size()), fixed_bits), store_(store), group_(group), map_(std::move(map)) {
  for (const ShardMap::Block& block : map_.blocks()) {
    for (std::size_t slice = names_.size(); slice < block.slices_end; ++slice) {
      names_.push_back(fmt::format("new values of slice {} ({} to {})", slice, store.parameter(block.parameters.front()).name,
                                   store.parameter(block.parameters.back()).name));
    }
  }
}

std::unique_ptr<Shard::Publication> SlicedShard::publish() {
  return std::make_unique<Gathers>(store_, group_, map_.slices(), names_);
}

void SlicedShard::sum_over_ranks(std::span<double> values) {
  group_.all_reduce(values, ReduceOp::sum, "parameter norms").wait_on_stream();
}

}  // namespace trireme::parallel
