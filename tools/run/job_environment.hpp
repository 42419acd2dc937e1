#pragma once

#include <string>
#include <utility>
#include <vector>

#include "command.hpp"

using Environment = std::vector<std::pair<std::string, std::string>>;

// Settings of Open MPI that a long job needs, those of deploy/openmpi; what is set already stays as it is.
Environment openmpi_settings(const Command& command);

// The command is mpirun, with nothing that could bring in another host.
bool is_on_this_host_alone(const Command& command);

// What all ranks and starts of a job share, random words where they are not set already: TRIREME_JOB_ID, and
// TRIREME_JOB_SECRET, by which ranks that meet over TCP know each other.
Environment job_identity();

// Makes mpirun of Open MPI give these variables, and what `environment` sets already, to ranks of other machines as well.
void share_with_ranks(Command& command, Environment& environment);
