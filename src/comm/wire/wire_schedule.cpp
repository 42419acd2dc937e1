#include "comm/wire/wire_schedule.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "comm/calls/call.hpp"

namespace trireme::comm {
namespace {

class Scheduler {
 public:
  Scheduler(std::span<const int> peers, int me, Range range)
      : peers_(peers), me_(me), count_(static_cast<int>(peers.size())), range_(range) {}

  WireSchedule all_pairs() const {
    WireStep step{.sends = {}, .receives = {}, .reduces = true, .place = static_cast<std::size_t>(me_)};
    for_others([&](int other) {
      step.sends.push_back({peer(other), range_});
      step.receives.push_back({peer(other), range_});
    });
    return {step};
  }

  WireSchedule direct() const {
    WireStep reduce{.sends = {}, .receives = {}, .reduces = true, .place = static_cast<std::size_t>(me_)};
    WireStep share;
    for_others([&](int other) {
      reduce.sends.push_back({peer(other), part(other)});
      reduce.receives.push_back({peer(other), part(me_)});
      share.sends.push_back({peer(other), part(me_)});
      share.receives.push_back({peer(other), part(other)});
    });
    return {reduce, share};
  }

  WireSchedule ring() const {
    WireSchedule schedule;
    const int next = peer((me_ + 1) % count_);
    const int previous = peer((me_ + count_ - 1) % count_);
    for (int turn = 0; turn < 2 * (count_ - 1); ++turn) {
      const bool reduces = turn < count_ - 1;
      schedule.push_back({.sends = {{next, part(around(me_ - turn))}},
                          .receives = {{previous, part(around(me_ - turn - 1))}},
                          .reduces = reduces});
    }
    return schedule;
  }

  WireSchedule halving_doubling() const {
    const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(count_)));
    const bool folds = power < count_;
    const bool outside = me_ >= power;
    const bool has_guest = me_ + power < count_;
    WireSchedule schedule;
    if (folds) {
      WireStep step{.sends = {}, .receives = {}, .reduces = true};
      if (outside) step.sends.push_back({peer(me_ - power), range_});
      if (has_guest) step.receives.push_back({peer(me_ + power), range_});
      schedule.push_back(step);
    }
    // Halving: my elements shrink to those whose bits of the part number agree with mine so far.
    Range kept = range_;
    WireSchedule halving;
    for (int distance = power / 2; distance > 0; distance /= 2) {
      if (outside) {
        halving.emplace_back();
        continue;
      }
      const auto [lower, upper] = halves(kept);
      const bool keep_lower = (me_ & distance) == 0;
      const int partner = peer(me_ ^ distance);
      halving.push_back({.sends = {{partner, keep_lower ? upper : lower}},
                         .receives = {{partner, keep_lower ? lower : upper}},
                         .reduces = true});
      kept = keep_lower ? lower : upper;
    }
    WireSchedule doubling;
    for (const WireStep& step : halving) {
      WireStep back;
      if (!outside) back = {.sends = step.receives, .receives = step.sends};
      doubling.insert(doubling.begin(), back);
    }
    schedule.insert(schedule.end(), halving.begin(), halving.end());
    schedule.insert(schedule.end(), doubling.begin(), doubling.end());
    if (folds) {
      WireStep step;
      if (has_guest) step.sends.push_back({peer(me_ + power), range_});
      if (outside) step.receives.push_back({peer(me_ - power), range_});
      schedule.push_back(step);
    }
    return schedule;
  }

 private:
  int peer(int number) const { return peers_[static_cast<std::size_t>(number)]; }
  int around(int number) const { return ((number % count_) + count_) % count_; }
  Range part(int number) const {
    const Range part = part_of(range_.count(), number, count_);
    return {range_.begin + part.begin, range_.begin + part.end};
  }
  static std::array<Range, 2> halves(Range range) {
    const std::int64_t middle = range.begin + part_of(range.count(), 0, 2).end;
    return {Range{range.begin, middle}, Range{middle, range.end}};
  }
  template <typename Action>
  void for_others(Action action) const {
    for (int other = 0; other < count_; ++other) {
      if (other != me_) action(other);
    }
  }

  std::span<const int> peers_;
  int me_;
  int count_;
  Range range_;
};

}  // namespace

WireSchedule all_reduce_schedule(Algorithm algorithm, std::span<const int> peers, int me, Range range) {
  const Scheduler scheduler(peers, me, range);
  switch (algorithm) {
    case Algorithm::all_pairs: return scheduler.all_pairs();
    case Algorithm::direct: return scheduler.direct();
    case Algorithm::ring: return scheduler.ring();
    case Algorithm::halving_doubling: return scheduler.halving_doubling();
    case Algorithm::automatic: break;
  }
  return scheduler.direct();
}

WireSchedule broadcast_schedule(std::span<const int> peers, int me, int root, Range range) {
  const int count = static_cast<int>(peers.size());
  const auto behind_root = [&](int place) { return peers[static_cast<std::size_t>((root + place) % count)]; };
  const int place = (me - root + count) % count;
  WireSchedule schedule(static_cast<std::size_t>(count - 1));
  if (place > 0) schedule[static_cast<std::size_t>(place - 1)].receives = {{behind_root(place - 1), range}};
  if (place < count - 1) schedule[static_cast<std::size_t>(place)].sends = {{behind_root(place + 1), range}};
  return schedule;
}

double all_reduce_seconds(Algorithm algorithm, int nodes, double bytes, const LinkModel& link) {
  const double others = nodes - 1;
  const double least = 2 * bytes * others / nodes;  // the least bytes that a node must send
  const bool power_of_two = std::has_single_bit(static_cast<unsigned>(nodes));
  // A message costs its sender about a tenth of the latency, so many small messages have a cost.
  const auto seconds = [&](double steps, double messages, double volume) {
    return steps * link.latency_seconds + messages * 0.1 * link.latency_seconds + volume * link.seconds_per_byte;
  };
  switch (algorithm) {
    case Algorithm::all_pairs: return seconds(1, others, bytes * others);
    case Algorithm::ring: return seconds(2 * others, 2 * others, least);
    case Algorithm::halving_doubling: {
      const double rounds = 2.0 * (std::bit_width(static_cast<unsigned>(nodes)) - 1);
      return seconds(rounds, rounds, least) + (power_of_two ? 0 : seconds(2, 2, 2 * bytes));
    }
    case Algorithm::direct:
    case Algorithm::automatic: break;
  }
  return seconds(2, 2 * others, least);
}

Algorithm choose_algorithm(int nodes, double bytes, const LinkModel& link) {
  constexpr std::array all = {Algorithm::all_pairs, Algorithm::direct, Algorithm::halving_doubling, Algorithm::ring};
  return *std::ranges::min_element(all, {},
                                   [&](Algorithm algorithm) { return all_reduce_seconds(algorithm, nodes, bytes, link); });
}

}  // namespace trireme::comm
