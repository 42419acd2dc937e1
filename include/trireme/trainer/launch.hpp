#pragma once

#include <functional>

#include "trireme/core/export.hpp"
#include "trireme/trainer/command_line.hpp"
#include "trireme/trainer/options.hpp"
#include "trireme/trainer/run.hpp"

namespace trireme TRIREME_EXPORT {
namespace trainer {

// The main function of a training program: reads the command line over the defaults, starts the ranks, and calls train with the
// run of each. It takes signals, the terminal and standard output; gives the exit code (core/exit_code.hpp). A mistake on the
// command line is told once, however many ranks there are.
//
//   int main(int argc, char** argv) {
//     return trainer::launch(argc, argv, {.until = Epochs{20}, .checkpoints = {.directory = "run"}}, train);
//   }
//
// Run alone, by mpirun -n 4, or with --backend thread --ranks 4.
int launch(int argc, char** argv, const Options& defaults, const std::function<void(Run&)>& train);

// With options of the program's own. What it is told there is kept in checkpoints: a run goes on with the same.
int launch(int argc, char** argv, CommandLine& line, const Options& defaults, const std::function<void(Run&)>& train);

}  // namespace trainer
}  // namespace trireme
