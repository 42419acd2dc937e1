#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "comm/calls/call.hpp"
#include "comm/shared/group_control.hpp"

namespace trireme::comm {

// Small all-reduces: each rank copies its data to a parcel, and every rank reduces all parcels into its own buffer. No rank
// accesses another's buffer, so a rank waits for the calls of the others but not for their work.
class SmallAllReduce {
 public:
  SmallAllReduce(const GroupControl& control, int ranks, int me);

  bool carry(const Call& call) const;  // the same answer on all ranks

  // Fills this rank's parcel, which is free once all ranks have finished call `sequence - GroupControl::parcels`.
  void fill(const Call& call, std::uint64_t sequence);
  bool all_filled(std::uint64_t sequence) const;
  void reduce(const Call& call, std::uint64_t sequence);

 private:
  GroupControl control_;
  int me_;
  std::vector<const std::byte*> from_;
};

}  // namespace trireme::comm
