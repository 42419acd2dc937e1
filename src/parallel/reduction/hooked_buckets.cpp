#include "parallel/reduction/hooked_buckets.hpp"

#include <algorithm>
#include <utility>

#include "parallel/step/planes.hpp"

namespace trireme::parallel {

bool HookedBuckets::launch() {
  FlatStore& store = compression_.store();
  const Bucket& bucket = buckets_[held_.size()];
  std::vector<NamedTensor> own;
  for (const int index : bucket.parameters) {
    if (compression_.owns(index)) own.push_back({store.parameter(index).name, store.gradient<float>(index)});
  }
  const std::vector<OwnedRange> ranges = compression_.owned_ranges(bucket.parameters);
  const bool shares = compression_.shares_gradients(bucket);
  std::vector<Range>& held = held_.emplace_back();
  if (shares) {
    held.push_back(bucket.range);
  } else {
    for (const auto& [owner, range] : ranges) {
      if (owner == compression_.groups().place) held.push_back(range);
    }
  }
  const Group& peers = compression_.groups().exchanges.front();
  GradientBucket gradients({.name = bucket.name, .step = step_, .rank = peers.rank(), .size = peers.size()}, std::move(own));
  under_way_.emplace_back(std::move(gradients), bucket.range, shares ? ranges : std::vector<OwnedRange>());
  go_on();
  return true;
}

bool HookedBuckets::go_on() {
  bool moved = false;
  int reached = done;  // the level that the previous bucket has reached
  for (HookedBucket& bucket : under_way_) {
    while (go_on(bucket, reached)) moved = true;
    reached = bucket.started;
  }
  while (!under_way_.empty() && under_way_.front().started == done) under_way_.pop_front();
  return moved;
}

bool HookedBuckets::go_on(HookedBucket& bucket, int reached) {
  if (bucket.started == done) return false;
  if (bucket.next == bucket.started) {
    if (!std::ranges::all_of(pending_of(bucket), [](Pending& pending) { return pending.done(); })) return false;
    bucket.next = find_next(bucket);
    return true;
  }
  if (bucket.next > reached) return false;
  start(bucket);
  bucket.started = bucket.next;
  return true;
}

// Runs the hook to its next exchange; null when it is done.
Exchange* HookedBuckets::run_hook(HookedBucket& bucket) {
  try {
    if (bucket.started == summed && !bucket.own.gradients().empty()) bucket.task = compression_.hook().reduce(bucket.own);
    return bucket.task ? bucket.task->resume() : nullptr;
  } catch (...) {
    failed_ = true;
    throw;
  }
}

int HookedBuckets::find_next(HookedBucket& bucket) {
  if (bucket.started == shared) return done;
  if (bucket.started == summed) bucket.pending.clear();
  bucket.exchange = run_hook(bucket);
  if (bucket.exchange == nullptr) {
    bucket.task.reset();
    return shared;
  }
  const int number = bucket.started + 1;
  failed_ = number > compression_.hook().max_exchanges();
  require(!failed_, "compression {} awaits exchange {}; max_exchanges() says {}", compression_.hook().str(), number,
          compression_.hook().max_exchanges());
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
    for (const auto& [owner, part] : bucket.to_share) {
      with_gradients(compression_.store(), part, [&](auto gradients) {
        bucket.pending.push_back(groups.share->broadcast(gradients, owner, bucket.own.name()));
      });
    }
  }
}

void HookedBuckets::finish(const Wait& wait) {
  while (!under_way_.empty() && !failed_) {
    if (go_on()) continue;
    for (Pending& pending : pending_of(under_way_.front())) wait(pending);
  }
}

}  // namespace trireme::parallel
