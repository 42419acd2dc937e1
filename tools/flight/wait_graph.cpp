#include "wait_graph.hpp"

#include <algorithm>

#include "trireme/core/error.hpp"

using namespace trireme::comm;

namespace {

const FlightGroup& group_of(const RankView& view, const FlightEntry& entry) { return view.file->groups[entry.group]; }

}  // namespace

bool is_collective(const FlightEntry& entry) { return entry.sequence != 0; }

WaitGraph::WaitGraph(const Job& job) : job_(job) {
  for (const RankView& view : job.ranks) {
    if (!view.file) continue;
    for (std::size_t place = 0; place < view.file->groups.size(); ++place) {
      const FlightGroup& group = view.file->groups[place];
      if (group.id != 0) groups_[group.id][group.me] = {view.rank, static_cast<std::uint32_t>(place)};
    }
  }
  const auto missed_deadline = [](const RankView& view) {
    return view.state == RankState::failed && view.header().error_code == static_cast<int>(trireme::ErrorCode::timeout);
  };
  if (std::ranges::any_of(job.ranks, missed_deadline)) {
    for (const RankView& view : job.ranks) find_late_call(view);
  }
  for (const RankView& view : job.ranks) find_blockers(view);
}

const FlightEntry* WaitGraph::call_of(const Member& member, std::uint64_t sequence) const {
  for (const FlightEntry& entry : view(member.rank).file->entries) {
    if (entry.group == member.place && entry.sequence == sequence) return &entry;
  }
  return nullptr;
}

// Notes the call that the rank is in if the rank made it only after another rank had given up the same call.
void WaitGraph::find_late_call(const RankView& view) {
  if (!view.file || view.state == RankState::finished) return;
  const FlightEntry* entry = view.stuck_in() != nullptr ? view.stuck_in() : view.last();
  if (entry == nullptr || !is_collective(*entry) || entry->fate == FlightFate::done) return;
  const auto known = groups_.find(group_of(view, *entry).id);
  if (known == groups_.end()) return;
  for (const auto& [index, member] : known->second) {
    const RankView& other = this->view(member.rank);
    const FlightEntry* its = call_of(member, entry->sequence);
    if (member.rank == view.rank || its == nullptr || its->fate != FlightFate::failed) continue;
    if (wall_seconds(*other.file, its->ended) < wall_seconds(*view.file, entry->issued)) late_calls_[view.rank] = entry;
  }
}

const FlightEntry* WaitGraph::late_call(int rank) const {
  const auto found = late_calls_.find(rank);
  return found == late_calls_.end() ? nullptr : found->second;
}

const FlightEntry* WaitGraph::stuck_in(const RankView& view) const {
  return late_calls_.contains(view.rank) ? nullptr : view.stuck_in();
}

const FlightEntry* WaitGraph::last_of(const RankView& view) const {
  const auto late = late_calls_.find(view.rank);
  if (late == late_calls_.end()) return view.last();
  for (std::uint64_t number = late->second->number - 1; number > 0; --number) {
    const FlightEntry* entry = view.file->find(number);
    if (entry == nullptr || is_collective(*entry)) return entry;
  }
  return nullptr;
}

// Finds the ranks that this rank waits for, or waited for when it ended.
void WaitGraph::find_blockers(const RankView& view) {
  const FlightEntry* entry = stuck_in(view);
  if (entry == nullptr) return;
  const FlightGroup& group = group_of(view, *entry);
  const auto known = groups_.find(group.id);
  if (known == groups_.end()) return;
  std::set<int>& blockers = blockers_[view.rank];
  if (!is_collective(*entry)) {
    const auto peer = known->second.find(entry->peer);
    if (peer != known->second.end() && peer->second.rank != view.rank) blockers.insert(peer->second.rank);
    return;
  }
  for (const auto& [index, member] : known->second) {
    if (member.rank == view.rank) continue;
    const FlightGroup& its = this->view(member.rank).file->groups[member.place];
    const auto late = late_calls_.find(member.rank);
    const bool is_late = late != late_calls_.end() && late->second->group == member.place;
    if (its.calls < entry->sequence + (is_late ? 1 : 0)) blockers.insert(member.rank);
  }
  if (!blockers.empty()) return;
  for (const auto& [index, member] : known->second) {
    const FlightEntry* its = call_of(member, entry->sequence);
    if (member.rank != view.rank && its != nullptr && its->fate != FlightFate::done) blockers.insert(member.rank);
  }
}

std::vector<int> WaitGraph::waiters_for(int rank) const {
  std::vector<int> waiters;
  for (const auto& [waiter, blockers] : blockers_) {
    if (blockers.contains(rank)) waiters.push_back(waiter);
  }
  return waiters;
}

bool WaitGraph::has_blockers(int rank) const {
  const auto found = blockers_.find(rank);
  return found != blockers_.end() && !found->second.empty();
}
