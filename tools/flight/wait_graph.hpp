#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "job.hpp"

bool is_collective(const trireme::comm::FlightEntry& entry);

// Which ranks of a job wait for which others, or waited when they ended.
class WaitGraph {
 public:
  explicit WaitGraph(const Job& job);

  struct Member {
    int rank = 0;
    std::uint32_t place = 0;  // index of the group in the rank's file
  };
  using Members = std::map<int, Member>;  // by rank in the group

  const std::map<std::uint64_t, Members>& groups() const { return groups_; }  // by the group's id
  const std::map<int, std::set<int>>& blockers() const { return blockers_; }  // by the waiting rank
  const trireme::comm::FlightEntry* late_call(int rank) const;                // null: no call of this rank came too late
  const trireme::comm::FlightEntry* stuck_in(
      const RankView& view) const;  // as RankView::stuck_in(), but null if that call came too late
  const trireme::comm::FlightEntry* last_of(
      const RankView& view) const;  // as RankView::last(), without a call that came too late
  std::vector<int> waiters_for(int rank) const;
  bool has_blockers(int rank) const;
  bool is_root(int rank) const { return !waiters_for(rank).empty() && !has_blockers(rank); }

 private:
  const RankView& view(int rank) const { return job_.ranks[static_cast<std::size_t>(rank)]; }
  const trireme::comm::FlightEntry* call_of(const Member& member, std::uint64_t sequence) const;
  void find_late_call(const RankView& view);
  void find_blockers(const RankView& view);

  const Job& job_;
  std::map<std::uint64_t, Members> groups_;
  std::map<int, std::set<int>> blockers_;
  std::map<int, const trireme::comm::FlightEntry*> late_calls_;
};
