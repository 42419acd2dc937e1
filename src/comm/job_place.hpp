#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "trireme/comm/launch.hpp"

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

// The rule of StartUp. Rank and size are those of the variables; with MPI only MPI knows them.
JobPlace find_job_place(StartUp wanted, const Environment& environment);

// "node[03-07,12],other" -> "node03".
std::string first_host(std::string_view slurm_node_list);

}  // namespace trireme::comm
