// Trains a GPT on text, on one rank or on many: see train_gpt --help and docs/train_gpt.md.

#include <cstdio>
#include <optional>

#include "trainer.hpp"

using namespace trireme;

int main(int argc, char** argv) {
  std::string help;
  std::optional<Options> options;
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
  const LaunchOptions how{
      .ranks = options->ranks, .threads_per_rank = options->threads, .flight_directory = options->flight_directory};
  return launch(options->backend, how, [&](const Group& world) {
    Trainer(*options, world).run();
    return 0;
  });
}
