#include "parallel/sharding.hpp"

#include <utility>

#include "parallel/planes.hpp"

namespace trireme::parallel {
namespace {

std::vector<Range> own_ranges(const Group& group, const std::vector<Slice>& slices) {
  std::vector<Range> ranges;
  for (const Slice& slice : slices) {
    const Range part = group.part(slice.range.count(), group.rank());
    ranges.push_back({slice.range.begin + part.begin, slice.range.begin + part.end});
  }
  return ranges;
}

class Gathers final : public Shard::Publication {
 public:
  Gathers(FlatStore& store, const Group& group, const std::vector<Slice>& slices)
      : store_(store), group_(group), slices_(slices) {}

  void updated(std::size_t range) override {
    const Slice& slice = slices_[range];
    with_values(store_, slice.range, [&](auto values) { pending_.push_back(group_.all_gather(values, slice.name)); });
    comm::progress();
  }

  void finish() override {
    for (std::size_t index = 0; index < pending_.size(); ++index) {
      pending_[index].wait_on_stream();
      store_.refresh_compute_copy(slices_[index].range);
    }
  }

 private:
  FlatStore& store_;
  const Group& group_;
  const std::vector<Slice>& slices_;
  std::vector<Pending> pending_;
};

}  // namespace

SlicedShard::SlicedShard(FlatStore& store, const Group& group, std::vector<Slice> slices)
    : Shard(own_ranges(group, slices)), store_(store), group_(group), slices_(std::move(slices)) {}

std::unique_ptr<Shard::Publication> SlicedShard::publish() { return std::make_unique<Gathers>(store_, group_, slices_); }

void SlicedShard::sum_over_ranks(std::span<double> values) {
  group_.all_reduce(values, ReduceOp::sum, "parameter norms").wait_on_stream();
}

}  // namespace trireme::parallel
