// The same as gpt_step, for a Llama.
#include "gpt_step/step_benchmark.hpp"

int main(int argc, char** argv) {
  StepBenchmarkOptions<trireme::models::LlamaOptions> options;
  options.model.kv_heads = 2;
  options.model.block = 256;
  options.model.tied = true;
  CommandLine command("A Llama training step against its matrix products alone; the defaults are the 9.5M model.");
  command.option("--layers", options.model.layers, "blocks");
  command.option("--heads", options.model.heads, "of queries");
  command.option("--kv-heads", options.model.kv_heads, "of keys and values");
  command.option("--width", options.model.width, "of the residual stream");
  command.option("--hidden", options.model.hidden, "features of a block's MLP");
  command.option("--experts", options.model.experts.count, "in place of each MLP; 0: none", not_negative);
  command.option("--top-k", options.model.experts.top_k, "experts that compute a token");
  command.option("--block", options.model.block, "tokens of a sequence");
  command.option("--vocabulary", options.model.vocabulary, "tokens there are");
  add_options(command, options);
  if (const auto code = command.parse(argc, argv)) return *code;
  return launch_step_benchmark<trireme::models::Llama>(options);
}
