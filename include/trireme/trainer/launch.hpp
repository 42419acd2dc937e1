#pragma once

#include <functional>

#include "trireme/core/export.hpp"
#include "trireme/trainer/command_line.hpp"
#include "trireme/trainer/options.hpp"
#include "trireme/trainer/run.hpp"

namespace trireme TRIREME_EXPORT {
namespace trainer {

// The main function of a training program: reads the command line over the defaults, starts the ranks, and calls train(run) on
// each. Handles signals, uses the terminal and standard output, and returns the exit code (core/exit_code.hpp). A mistake on
// the command line is printed once, however many ranks there are.
//
//   int main(int argc, char** argv) {
//     return trainer::launch(argc, argv, {.until = Epochs{20}, .checkpoints = {.directory = "run"}}, train);
//   }
//
// Run alone, by mpirun -n 4, or with --backend thread --ranks 4.
int launch(int argc, char** argv, const Options& defaults, const std::function<void(Run&)>& train);

// With options of the program's own. Checkpoints keep their values as settings, which a resumed run must have too, see Differs.
int launch(int argc, char** argv, CommandLine& line, const Options& defaults, const std::function<void(Run&)>& train);

}  // namespace trainer
}  // namespace trireme
