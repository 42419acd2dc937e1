#pragma once

#include "trireme/comm/base/group.hpp"

namespace trireme::test {

using RankMain = int (*)(const Group& gpu);

// The main of a program whose ranks are processes that may share one GPU: each is a machine of its own to NCCL, and data go
// over sockets. 77 where there is no GPU.
//   PROGRAM RANKS [fails]    starts the ranks
//   PROGRAM rank [fails]     is one, started as torchrun would
int run_nccl_ranks(int argc, char** argv, RankMain checks, RankMain fails);

}  // namespace trireme::test
