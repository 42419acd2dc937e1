#pragma once

#include <string>
#include <vector>

#include "trireme/core/export.hpp"

namespace trireme::comm {

// The members of a group.
struct Members {
  std::string label;       // "world", "data"
  std::vector<int> ranks;  // world ranks, by group rank
  int me = 0;              // this rank's index

  int size() const { return static_cast<int>(ranks.size()); }
};

std::vector<int> ranks_below(int size);  // 0 to size - 1

Members world_members(int rank, int size);

TRIREME_EXPORT std::string list_of_ranks(const std::vector<int>& ranks);  // "rank 2", "ranks 0, 2, 3"

}  // namespace trireme::comm
