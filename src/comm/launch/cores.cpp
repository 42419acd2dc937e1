#include "comm/launch/cores.hpp"

#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "trireme/device/core_quota.hpp"

namespace trireme::comm {

cpu_set_t own_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof(cores), &cores) != 0) CPU_SET(0, &cores);
  return cores;
}

int usable_cores(const cpu_set_t& cores, int ranks_on_them, int ranks_on_node) {
  const std::int64_t of_quota = std::int64_t{device::core_quota()} * ranks_on_them / ranks_on_node;
  return static_cast<int>(std::clamp<std::int64_t>(CPU_COUNT(&cores), 1, std::max<std::int64_t>(of_quota, 1)));
}

int threads_of_rank(int cores, int ranks, int wanted) {
  if (wanted > 0) return wanted;
  const char* variable = std::getenv("OMP_NUM_THREADS");
  const int threads = variable == nullptr ? 0 : std::atoi(variable);
  return threads > 0 ? threads : std::max(1, cores / ranks);
}

void set_threads(int threads) { omp_set_num_threads(threads); }

}  // namespace trireme::comm
