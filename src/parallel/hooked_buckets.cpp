#include "parallel/hooked_buckets.hpp"

#include <algorithm>
#include <utility>

#include "parallel/planes.hpp"

namespace trireme::parallel {

void HookedBuckets::launch(const Bucket& bucket) {
  FlatStore& store = compression_.store();
  std::vector<NamedTensor> own;
  std::vector<std::pair<int, Range>> parts;
  for (const int index : bucket.parameters) {
    const ParameterInfo& info = store.parameter(index);
    const int owner = compression_.owner_of(index);
    if (compression_.owns(index)) own.push_back({info.name, store.gradient<float>(index)});
    if (parts.empty() || parts.back().first != owner) parts.emplace_back(owner, Range{info.offset, info.offset});
    parts.back().second.end = info.offset + info.numel;
  }
  const Group& peers = compression_.groups().exchanges.front();
  GradientBucket gradients({.name = bucket.name, .step = step_, .rank = peers.rank(), .size = peers.size()}, std::move(own));
  buckets_.emplace_back(std::move(gradients), bucket.range, std::move(parts));
  ++launched_;
  advance();
}

bool HookedBuckets::advance() {
  bool moved = false;
  int reached = done;  // by the bucket before
  for (HookedBucket& bucket : buckets_) {
    while (advance(bucket, reached)) moved = true;
    reached = bucket.started;
  }
  while (!buckets_.empty() && buckets_.front().started == done) buckets_.pop_front();
  return moved;
}

bool HookedBuckets::advance(HookedBucket& bucket, int reached) {
  if (bucket.started == done) return false;
  if (bucket.next == bucket.started) {
    if (!std::ranges::all_of(under_way(bucket), [](Pending& pending) { return pending.done(); })) return false;
    bucket.next = find_next(bucket);
    return true;
  }
  if (bucket.next > reached) return false;
  start(bucket);
  bucket.started = bucket.next;
  return true;
}

// Runs the hook, until it needs its next exchange.
int HookedBuckets::find_next(HookedBucket& bucket) {
  if (bucket.started == shared) return done;
  if (bucket.started == summed) {
    bucket.pending.clear();
    if (!bucket.own.gradients().empty()) bucket.task = compression_.hook().reduce(bucket.own);
  }
  bucket.exchange = bucket.task ? bucket.task->resume() : nullptr;
  if (bucket.exchange == nullptr) {
    bucket.task.reset();
    return shared;
  }
  const int number = bucket.started + 1;
  require(number <= compression_.hook().max_exchanges(), "compression {} awaits exchange {}; max_exchanges() says {}",
          compression_.hook().str(), number, compression_.hook().max_exchanges());
  return number;
}

void HookedBuckets::start(HookedBucket& bucket) {
  const HookGroups& groups = compression_.groups();
  if (bucket.exchange != nullptr) {
    bucket.exchange->start(groups.exchanges[static_cast<std::size_t>(bucket.next - 1)]);
  } else if (bucket.next == summed && groups.sum) {
    with_gradients(compression_.store(), bucket.range, [&](auto gradients) {
      bucket.pending.push_back(groups.sum->all_reduce(gradients, ReduceOp::sum, bucket.own.name()));
    });
  } else if (bucket.next == shared && groups.share) {
    for (const auto& [owner, part] : bucket.parts) {
      with_gradients(compression_.store(), part, [&](auto gradients) {
        bucket.pending.push_back(groups.share->broadcast(gradients, owner, bucket.own.name()));
      });
    }
  }
}

void HookedBuckets::finish(const std::function<void(Pending&)>& wait) {
  while (!buckets_.empty()) {
    if (advance()) continue;
    for (Pending& pending : under_way(buckets_.front())) wait(pending);
  }
}

}  // namespace trireme::parallel
