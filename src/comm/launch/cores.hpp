#pragma once

#include <sched.h>

namespace trireme::comm {

inline constexpr int most_threads = 1024;  // OpenMP threads of a rank; also ranks that are threads

cpu_set_t own_cores();  // the affinity mask of this thread

// How many of these cores `ranks_on_them` ranks may use, since all ranks of the node share the quota of a control group. At
// least 1.
int usable_cores(const cpu_set_t& cores, int ranks_on_them, int ranks_on_node);

// The OpenMP threads of a rank: `wanted` if positive, else the first number of OMP_NUM_THREADS if that has only numbers, else
// `cores` / `ranks`, where `ranks` ranks share the cores.
int threads_of_rank(int cores, int ranks, int wanted);

void set_threads(int threads);  // of the OpenMP regions that this thread starts

}  // namespace trireme::comm
