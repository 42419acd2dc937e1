#pragma once

#include <sched.h>

namespace trireme::comm {

inline constexpr int most_threads = 1024;  // of a rank, and of ranks that are threads

cpu_set_t own_cores();  // the affinity mask of this thread

// How many of these cores `ranks_on_them` ranks may use, where a control group's quota is shared by all ranks of the node. 1 at
// least.
int usable_cores(const cpu_set_t& cores, int ranks_on_them, int ranks_on_node);

// OpenMP threads of a rank whose `cores` are shared by `ranks` ranks; `wanted` overrides when positive, then the first number
// of the environment variable OMP_NUM_THREADS, where it has numbers alone.
int threads_of_rank(int cores, int ranks, int wanted);

void set_threads(int threads);  // of the OpenMP regions that this thread starts

}  // namespace trireme::comm
