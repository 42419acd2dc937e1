#include "parallel/reduction/tied_sums.hpp"

#include <algorithm>
#include <utility>

#include "parallel/step/planes.hpp"

namespace trireme::parallel {
namespace {

// The ranges of a bucket that all ranks of an expert axis hold. Gaps belong to the parameter before them.
std::vector<Range> ranges_beside_experts(FlatStore& store, const Bucket& bucket) {
  std::vector<Range> ranges;
  bool goes_on = false;
  for (const int index : bucket.parameters) {
    const ParameterInfo& parameter = store.parameter(index);
    const bool shared = !parameter.placement.split();
    const Range range{parameter.offset, parameter.offset + parameter.numel};
    if (shared && goes_on) ranges.back().end = range.end;
    if (shared && !goes_on) ranges.push_back(range);
    goes_on = shared;
  }
  return ranges;
}

}  // namespace

TiedSums::TiedSums(const Replicas& replicas, const Buckets& buckets) : replicas_(replicas) {
  const std::span<const Bucket> list = buckets.list();
  for (std::size_t bucket = 0; replicas.expert != nullptr && bucket < list.size(); ++bucket) {
    sums_.push_back({.ranks = replicas.expert.get(),
                     .bucket = bucket,
                     .shared = ranges_beside_experts(replicas.store, list[bucket]),
                     .name = list[bucket].name});
  }
  for (const auto& [parameter, ranks] : replicas.tied) {
    if (parameter < 0) continue;
    const std::size_t bucket = buckets.bucket_of(parameter);
    sums_.push_back({.ranks = ranks.get(),
                     .bucket = bucket,
                     .shared = {list[bucket].range},
                     .name = replicas.store.parameter(parameter).name});
  }
}

bool TiedSums::are_done(std::size_t bucket) const {
  return std::ranges::none_of(sums_, [bucket](const Sum& sum) { return sum.bucket == bucket && !sum.done; });
}

void TiedSums::advance(LaunchedBuckets& launched, bool wait) {
  for (Sum& sum : sums_) {
    if (!advance(sum, launched, wait)) return;
  }
}

// Advances a sum; returns whether it has begun.
bool TiedSums::advance(Sum& sum, LaunchedBuckets& launched, bool wait) {
  if (sum.done) return true;
  if (!sum.begun && !is_ready(sum, launched, wait)) return false;
  if (!std::exchange(sum.begun, true)) begin(sum, launched);
  if (wait) {
    for (Pending& pending : sum.pending) launched.wait_for(pending);
  }
  sum.done = std::ranges::all_of(sum.pending, [&](Pending& pending) { return wait || pending.done(); });
  return true;
}

// Whether the sum's inputs are there: the sums over the replicas, and for stages also those over an expert axis.
bool TiedSums::is_ready(const Sum& sum, LaunchedBuckets& launched, bool wait) const {
  const auto before = std::ranges::find(sums_, sum.bucket, &Sum::bucket);
  return &*before == &sum ? launched.is_reduced(sum.bucket, wait) : before->done;
}

void TiedSums::begin(Sum& sum, const LaunchedBuckets& launched) const {
  // Each replica does this in its own group, which may be divided differently into nodes: fixed_sum gives all the same bits. A
  // sum of two has the same bits anyway.
  const ReduceOp op = replicas_.sharded || sum.ranks->size() == 2 ? ReduceOp::sum : ReduceOp::fixed_sum;
  for (const Range& held : launched.held(sum.bucket)) {
    for (const Range& shared : sum.shared) {
      const Range range{std::max(held.begin, shared.begin), std::min(held.end, shared.end)};
      if (range.count() <= 0) continue;
      with_gradients(replicas_.store, range,
                     [&](auto gradients) { sum.pending.push_back(sum.ranks->all_reduce(gradients, op, sum.name)); });
    }
  }
}

}  // namespace trireme::parallel
