#pragma once

#include <string>
#include <utility>
#include <vector>

#include "command.hpp"

using Environment = std::vector<std::pair<std::string, std::string>>;

// The settings of Open MPI in deploy/openmpi, which a long job needs, without those that are already set.
Environment openmpi_settings(const Command& command);

// Whether the command is mpirun, and neither its words, nor the environment, nor Open MPI's files may name another host.
bool is_on_this_host_alone(const Command& command);

// Random values for all ranks and starts of a job, if not set already: TRIREME_JOB_ID, and TRIREME_JOB_SECRET, by which ranks
// that connect over TCP recognise each other.
Environment job_identity();

// Makes mpirun of Open MPI pass the TRIREME_ variables of `environment` to ranks on other machines too, in addition to those
// that it is already told to pass.
void share_with_ranks(Command& command, Environment& environment);
