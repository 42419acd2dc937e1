// One training step of a GPT against its floor, the time of all matrix products of the step alone, in the same process.
#include "gpt_step/step_benchmark.hpp"

int main(int argc, char** argv) {
  StepBenchmarkOptions<trireme::models::GptOptions> options;
  CommandLine command("A GPT training step against its matrix products alone; the defaults are the 10.9M model.");
  command.options_of(options.model);
  add_options(command, options);
  if (const auto code = command.parse(argc, argv)) return *code;
  return launch_step_benchmark<trireme::models::Gpt>(options);
}
