#pragma once

#include <cstdio>
#include <optional>
#include <string>

#include "training/options.hpp"
#include "trireme/core/error.hpp"

// The main of a trainer: reads the options, starts the ranks and calls train(options, world) on each.
// parse_options(argc, argv, help) throws trireme::Error; a text in `help` is printed instead of training.
template <typename Parse, typename Train>
int run_program(int argc, char** argv, Parse parse_options, Train train) {
  using namespace trireme;
  std::string help;
  std::optional<decltype(parse_options(argc, argv, help))> options;
  std::optional<Error> refusal;
  try {
    options = parse_options(argc, argv, help);
  } catch (const Error& error) {
    refusal = error;
  }
  // Every process of a job gets here with the same command line; one of them speaks for all.
  if (refusal) {
    return launch(BackendKind::mpi, {}, [&](const Group& world) {
      world.agree([&] { throw *refusal; }, "read the options");
      return 2;
    });
  }
  if (!help.empty()) {
    return launch(BackendKind::mpi, {}, [&](const Group& world) {
      if (world.rank() == 0) std::fputs(help.c_str(), stdout);
      return 0;
    });
  }
  const TrainingOptions& training = options->training;
  const LaunchOptions how{
      .ranks = training.ranks, .threads_per_rank = training.threads, .flight_directory = training.flight_directory};
  return launch(training.backend, how, [&](const Group& world) {
    train(*options, world);
    return 0;
  });
}
