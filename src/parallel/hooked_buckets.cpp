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
  flights_.emplace_back(std::move(gradients), bucket.range, std::move(parts));
  ++launched_;
  advance();
}

bool HookedBuckets::advance() {
  bool moved = false;
  int reached = done;  // by the bucket before
  for (Flight& flight : flights_) {
    while (advance(flight, reached)) moved = true;
    reached = flight.started;
  }
  while (!flights_.empty() && flights_.front().started == done) flights_.pop_front();
  return moved;
}

bool HookedBuckets::advance(Flight& flight, int reached) {
  if (flight.started == done) return false;
  if (flight.next == flight.started) {
    if (!std::ranges::all_of(under_way(flight), [](Pending& pending) { return pending.done(); })) return false;
    flight.next = find_next(flight);
    return true;
  }
  if (flight.next > reached) return false;
  start(flight);
  flight.started = flight.next;
  return true;
}

// Runs the hook, until it needs its next exchange.
int HookedBuckets::find_next(Flight& flight) {
  if (flight.started == shared) return done;
  if (flight.started == summed) {
    flight.pending.clear();
    if (!flight.own.gradients().empty()) flight.task = compression_.hook().reduce(flight.own);
  }
  flight.exchange = flight.task ? flight.task->resume() : nullptr;
  if (flight.exchange == nullptr) {
    flight.task.reset();
    return shared;
  }
  const int number = flight.started + 1;
  require(number <= compression_.hook().max_exchanges(), "compression {} awaits exchange {}; max_exchanges() says {}",
          compression_.hook().str(), number, compression_.hook().max_exchanges());
  return number;
}

void HookedBuckets::start(Flight& flight) {
  const HookGroups& groups = compression_.groups();
  if (flight.exchange != nullptr) {
    flight.exchange->start(groups.exchanges[static_cast<std::size_t>(flight.next - 1)]);
  } else if (flight.next == summed && groups.sum) {
    with_gradients(compression_.store(), flight.range, [&](auto gradients) {
      flight.pending.push_back(groups.sum->all_reduce(gradients, ReduceOp::sum, flight.own.name()));
    });
  } else if (flight.next == shared && groups.share) {
    for (const auto& [owner, part] : flight.parts) {
      with_gradients(compression_.store(), part, [&](auto gradients) {
        flight.pending.push_back(groups.share->broadcast(gradients, owner, flight.own.name()));
      });
    }
  }
}

void HookedBuckets::finish(const std::function<void(Pending&)>& wait) {
  while (!flights_.empty()) {
    if (advance()) continue;
    for (Pending& pending : under_way(flights_.front())) wait(pending);
  }
}

}  // namespace trireme::parallel
