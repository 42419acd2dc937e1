#pragma once

#include <functional>

#include "trireme/core/export.hpp"
#include "trireme/trainer/command_line.hpp"
#include "trireme/trainer/options.hpp"
#include "trireme/trainer/run.hpp"

namespace trireme TRIREME_EXPORT {
namespace trainer {

// The main function of a training program. It reads the command line, which overrides the defaults; then it starts the ranks
// and calls train(run) on each rank. It handles signals, uses the terminal and standard output, and returns the exit code
// (core/exit_code.hpp). A mistake on the command line is printed once, for any number of ranks.
//
//   int main(int argc, char** argv) {
//     return trainer::launch(argc, argv, {.until = Epochs{20}, .checkpoints = {.directory = "run"}}, train);
//   }
//
// Start the program directly, by mpirun -n 4, or with --backend thread --ranks 4.
int launch(int argc, char** argv, const Options& defaults, const std::function<void(Run&)>& train);

// For a program with options of its own. Checkpoints keep the values of these options as settings; a resumed run must have the
// same values, see Differs.
int launch(int argc, char** argv, CommandLine& line, const Options& defaults, const std::function<void(Run&)>& train);

}  // namespace trainer
}  // namespace trireme
