#include "comm/cores.hpp"

#include <omp.h>

#include <algorithm>

namespace trireme::comm {

cpu_set_t own_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof(cores), &cores) != 0) CPU_SET(0, &cores);
  return cores;
}

int threads_of_rank(int cores, int ranks, int wanted) { return wanted > 0 ? wanted : std::max(1, cores / ranks); }

void set_threads(int threads) { omp_set_num_threads(threads); }

}  // namespace trireme::comm
