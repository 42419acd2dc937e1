#include "comm/launch/cores.hpp"

#include <omp.h>

#include <algorithm>
#include <cstdlib>

namespace trireme::comm {

cpu_set_t own_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof(cores), &cores) != 0) CPU_SET(0, &cores);
  return cores;
}

int threads_of_rank(int cores, int ranks, int wanted) {
  if (wanted > 0) return wanted;
  const char* variable = std::getenv("OMP_NUM_THREADS");
  const int threads = variable == nullptr ? 0 : std::atoi(variable);
  return threads > 0 ? threads : std::max(1, cores / ranks);
}

void set_threads(int threads) { omp_set_num_threads(threads); }

}  // namespace trireme::comm
