#pragma once

#include <functional>

#include "command_line.hpp"
#include "trireme/comm/base/group.hpp"
#include "trireme/comm/launch/launch.hpp"

namespace trireme {

// Reads the command line, once for all processes of a job, and calls main on every rank. Gives the exit code, the largest of
// all ranks'. `backend` is asked when the options are read.
int launch_program(CLI::App& app, int argc, char** argv, const std::function<BackendKind()>& backend,
                   const std::function<int(const Group&)>& main);

}  // namespace trireme
