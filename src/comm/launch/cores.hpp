#pragma once

#include <sched.h>

namespace trireme::comm {

cpu_set_t own_cores();  // the affinity mask of this thread

// OpenMP threads of a rank whose `cores` are shared by `ranks` ranks; `wanted` overrides when positive, then the
// environment variable OMP_NUM_THREADS.
int threads_of_rank(int cores, int ranks, int wanted);

void set_threads(int threads);  // of the OpenMP regions that this thread starts

}  // namespace trireme::comm
