#include "comm/launch/job_place.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "trireme/core/parse_number.hpp"

namespace trireme::comm {
namespace {

constexpr int torch_port = 29500;
constexpr int largest_port = 65535;
constexpr int most_ranks = 1 << 20;

bool is_set(const Environment& environment, const char* name) { return environment(name) != nullptr; }

std::optional<int> find_number(const Environment& environment, const char* name) {
  const char* value = environment(name);
  if (value == nullptr) return std::nullopt;
  const auto number = parse_number<int>(value);
  require(number && *number >= 0, "{} is a number, not \"{}\"", name, value);
  return number;
}

// The number of the first of these variables that is set.
template <typename Names>
std::optional<int> find_first_number(const Environment& environment, const Names& names) {
  for (const char* name : names) {
    if (is_set(environment, name)) return find_number(environment, name);
  }
  return std::nullopt;
}

int number(const Environment& environment, const char* name) {
  const auto found = find_number(environment, name);
  require(found.has_value(), "{} is not set: start the processes by torchrun or srun, or set it", name);
  return *found;
}

std::string text(const Environment& environment, const char* name) {
  const char* value = environment(name);
  require(value != nullptr, "{} is not set: start the processes by torchrun or srun, or set it", name);
  return value;
}

// Checks a place that was read from variables with these names.
JobPlace checked(JobPlace place, const char* rank, const char* size) {
  require(place.size > 0 && place.size <= most_ranks, "{} is {}: a job has up to {} ranks", size, place.size, most_ranks);
  require(place.rank < place.size, "{} is {}: the {} ranks of {} are counted from 0", rank, place.rank, place.size, size);
  require(place.local_size > 0 && place.local_size <= place.size, "LOCAL_WORLD_SIZE is {}: a node has 1 to {} ranks",
          place.local_size, place.size);
  return place;
}

// The port of TRIREME_PORT, else of MASTER_PORT, else `usual`.
int port_of(const Environment& environment, int usual) {
  for (const char* name : {"TRIREME_PORT", "MASTER_PORT"}) {
    const auto port = find_number(environment, name);
    if (!port) continue;
    require(*port > 0 && *port <= largest_port, "{} is {}: the ranks meet at a port from 1 to {}", name, *port, largest_port);
    return *port;
  }
  return usual;
}

JobPlace torchrun_place(const Environment& environment) {
  JobPlace place{.start_up = StartUp::torchrun,
                 .rank = number(environment, "RANK"),
                 .size = number(environment, "WORLD_SIZE"),
                 .local_rank = find_number(environment, "LOCAL_RANK").value_or(0),
                 .local_size = find_number(environment, "LOCAL_WORLD_SIZE").value_or(1),
                 .address = text(environment, "MASTER_ADDR"),
                 .port = port_of(environment, torch_port)};
  // With this variable torchrun's agent listens at MASTER_PORT itself.
  const char* agent = environment("TORCHELASTIC_USE_AGENT_STORE");
  const bool is_taken = agent != nullptr && std::string_view(agent) == "True" && !is_set(environment, "TRIREME_PORT");
  if (is_taken) place.port += place.port < largest_port ? 1 : -1;
  return checked(place, "RANK", "WORLD_SIZE");
}

std::string slurm_address(const Environment& environment) {
  for (const char* name : {"MASTER_ADDR", "SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"}) {
    if (is_set(environment, name)) return first_host(environment(name));
  }
  return "127.0.0.1";
}

JobPlace slurm_place(const Environment& environment) {
  constexpr int first_port = 20000;
  constexpr int ports = 12000;  // keeps ports below 32768, where those of outgoing connections begin
  const int job = find_number(environment, "SLURM_JOB_ID").value_or(0);
  JobPlace place{.start_up = StartUp::slurm,
                 .rank = number(environment, "SLURM_PROCID"),
                 .size = number(environment, "SLURM_NTASKS"),
                 .local_rank = find_number(environment, "SLURM_LOCALID").value_or(0),
                 .address = slurm_address(environment),
                 .port = port_of(environment, first_port + job % ports)};
  return checked(place, "SLURM_PROCID", "SLURM_NTASKS");
}

JobPlace mpi_place(const Environment& environment) {
  const std::array names = {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "PMI_LOCAL_RANK", "SLURM_LOCALID"};
  return {.start_up = StartUp::mpi, .local_rank = find_first_number(environment, names).value_or(0)};
}

bool is_one_of_several(const Environment& environment, const char* name) {
  return find_number(environment, name).value_or(1) > 1;
}

StartUp choose(const Environment& environment) {
  const auto all_set = [&environment](const auto& names) {
    return std::ranges::all_of(names, [&environment](const char* name) { return is_set(environment, name); });
  };
  if (started_by_mpi(environment)) return StartUp::mpi;
  if (all_set(std::array{"RANK", "WORLD_SIZE", "MASTER_ADDR"})) return StartUp::torchrun;
  if (all_set(std::array{"SLURM_PROCID", "SLURM_NTASKS"})) return StartUp::slurm;
  if (is_one_of_several(environment, "WORLD_SIZE")) return StartUp::torchrun;  // torchrun_place() names the missing variable
  return StartUp::single;
}

}  // namespace

bool started_by_mpi(const Environment& environment) {
  return std::ranges::any_of(std::array{"OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMIX_RANK", "PMI_SIZE"},
                             [&environment](const char* name) { return is_set(environment, name); });
}

void require_alone(const Environment& environment) {
  for (const char* name : {"WORLD_SIZE", "SLURM_STEP_NUM_TASKS"}) {
    if (!is_one_of_several(environment, name)) continue;
    const char* processes = environment(name);
    throw Error(
        {.code = ErrorCode::not_available,
         .message = fmt::format("{} is {}, but MPI has not joined these processes: each would train alone", name, processes),
         .hint = fmt::format("start one job by mpirun -n {} PROGRAM, or under Slurm by srun --mpi=pmix -n {} PROGRAM; "
                             "for one process alone unset {}",
                             processes, processes, name)});
  }
}

void require_whole_world(int size, const Environment& environment) {
  const std::array names = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"};
  const int announced = find_first_number(environment, names).value_or(1);
  if (size > 1 || announced <= 1) return;
  throw Error(
      {.code = ErrorCode::not_available,
       .message = fmt::format("{} processes were started, but MPI has not joined them: each would train alone", announced),
       .hint = "start them by the mpirun of the MPI that this program was built with, or under Slurm by srun --mpi=pmix"});
}

bool is_first_process(const Environment& environment) {
  const std::array names = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "RANK", "SLURM_PROCID"};
  return std::ranges::all_of(names, [&environment](const char* name) {
    const char* rank = environment(name);
    return rank == nullptr || parse_number<int>(rank) == 0;
  });
}

JobPlace find_job_place(StartUp wanted, const Environment& environment) {
  switch (wanted == StartUp::automatic ? choose(environment) : wanted) {
    case StartUp::mpi: return mpi_place(environment);
    case StartUp::torchrun: return torchrun_place(environment);
    case StartUp::slurm: return slurm_place(environment);
    case StartUp::automatic:
    case StartUp::single: break;
  }
  return {};
}

std::string first_host(std::string_view slurm_node_list) {
  const std::string_view prefix = slurm_node_list.substr(0, slurm_node_list.find_first_of(",["));
  std::string host(prefix);
  if (prefix.size() == slurm_node_list.size() || slurm_node_list[prefix.size()] == ',') return host;
  const std::string_view numbers = slurm_node_list.substr(prefix.size() + 1);
  host += numbers.substr(0, numbers.find_first_of(",-]"));
  const std::string_view after = numbers.substr(std::min(numbers.find(']') + 1, numbers.size()));
  host += after.substr(0, after.find(','));
  return host;
}

}  // namespace trireme::comm
