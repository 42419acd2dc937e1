#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "trireme/comm/launch/launch.hpp"

namespace trireme::comm {

// A process's place in its job, and where its ranks meet unless MPI joins them.
struct JobPlace {
  StartUp start_up = StartUp::single;
  int rank = 0;
  int size = 1;
  int local_rank = 0;  // on its machine
  int local_size = 1;  // processes that share this one's cores
  std::string address = {};
  int port = 0;
};

using Environment = std::function<const char*(const char*)>;  // std::getenv

bool started_by_mpi(const Environment& environment);

// For a process that is about to run alone: Error{not_available} where a launcher's variables say that it is one of several,
// each of which would train on its own.
void require_alone(const Environment& environment);

// `size` of MPI_COMM_WORLD is what the launcher announces; Error{not_available} where each process is alone in it.
void require_whole_world(int size, const Environment& environment);

// By the launcher's variables; true where there are none. This process prints what all others find too.
bool is_first_process(const Environment& environment);

// The rule of StartUp. Rank and size are those of the variables; with MPI only MPI knows them.
JobPlace find_job_place(StartUp wanted, const Environment& environment);

// "node[03-07,12],other" -> "node03".
std::string first_host(std::string_view slurm_node_list);

}  // namespace trireme::comm
