#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "trireme/comm/launch/launch.hpp"

namespace trireme::comm {

// A process's place in its job, and the address where the ranks meet unless MPI joins them.
struct JobPlace {
  StartUp start_up = StartUp::single;
  int rank = 0;
  int size = 1;
  int local_rank = 0;  // on this machine
  int local_size = 1;  // processes that share this one's cores
  std::string address = {};
  int port = 0;
};

using Environment = std::function<const char*(const char*)>;  // std::getenv

bool started_by_mpi(const Environment& environment);

// For a process that is about to run alone: throws Error{not_available} if a launcher's variables show that it is one of
// several, each of which would train alone.
void require_alone(const Environment& environment);

// `size`: of MPI_COMM_WORLD. Throws Error{not_available} if each process is alone in it although the launcher started several.
void require_whole_world(int size, const Environment& environment);

// Whether the launcher's variables name this process as the first; true without such variables. The first process prints errors
// that all processes have.
bool is_first_process(const Environment& environment);

// Finds the launcher by the rule of StartUp, and reads rank and size from its variables; with MPI only MPI knows them.
JobPlace find_job_place(StartUp wanted, const Environment& environment);

// "node[03-07,12],other" -> "node03".
std::string first_host(std::string_view slurm_node_list);

}  // namespace trireme::comm
