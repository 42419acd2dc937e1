#include "comm/launch/cores.hpp"

#include <omp.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string_view>

#include "trireme/core/parse_number.hpp"
#include "trireme/device/core_quota.hpp"

namespace trireme::comm {
namespace {

std::string_view without_spaces(std::string_view text) {
  constexpr std::string_view spaces = " \t";
  const std::size_t first = text.find_first_not_of(spaces);
  return first == text.npos ? "" : text.substr(first, text.find_last_not_of(spaces) - first + 1);
}

// The first number of OMP_NUM_THREADS, which has one for each level of nested teams: "4,2". Nothing if the list has anything
// but numbers, as in OpenMP.
std::optional<int> first_team_of(std::string_view list) {
  std::optional<int> first;
  for (bool goes_on = true; goes_on;) {
    const std::size_t comma = list.find(',');
    goes_on = comma != list.npos;
    const auto threads = parse_number<int>(without_spaces(list.substr(0, comma)));
    if (!threads || *threads <= 0 || *threads > most_threads) return std::nullopt;
    if (!first) first = threads;
    if (goes_on) list.remove_prefix(comma + 1);
  }
  return first;
}

}  // namespace

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
  const auto threads = variable == nullptr ? std::nullopt : first_team_of(variable);
  return threads.value_or(std::max(1, cores / ranks));
}

void set_threads(int threads) { omp_set_num_threads(threads); }

}  // namespace trireme::comm
