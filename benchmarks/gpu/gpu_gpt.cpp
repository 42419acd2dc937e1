// Training steps of a GPT-2 on one GPU, launched as one graph and eager; benchmarks/peers/gpu_gpt.py is the same in PyTorch.

#include <nlohmann/json.hpp>
#include <random>
#include <trireme/trireme.hpp>

#include "gpu_measurement.hpp"
#include "measurement/command_line.hpp"

using namespace trireme;

namespace {

struct Options {
  models::GptOptions model = {.layers = 12, .heads = 12, .width = 768, .block = 1024, .vocabulary = 50304};
  std::int64_t batch = 32;
  int steps = 20;
};

Tensor<std::int32_t> made_up_tokens(const Options& options, std::int64_t stride) {
  Tensor<std::int32_t> tokens({options.batch, options.model.block});
  for (std::int64_t i = 0; i < tokens.numel(); ++i) {
    tokens.data()[i] = static_cast<std::int32_t>(i * stride % options.model.vocabulary);
  }
  return tokens;
}

// As initialize(), but repeats the drawn numbers: to draw 1.5B normal numbers the host would need minutes.
void make_up_values(FlatStore& store) {
  std::minstd_rand generator(1);
  std::normal_distribution<float> normal;
  std::vector<float> drawn(1'000'003);  // a prime: no two rows of a matrix are alike
  for (float& number : drawn) number = normal(generator);
  for (int index = 0; index < store.num_parameters(); ++index) {
    const ParameterInfo& parameter = store.parameter(index);
    const Initializer& initializer = parameter.initializer;  // a: the mean, or the constant; b: the deviation
    const Tensor<float> values = Tensor<float>::full(parameter.shape, static_cast<float>(initializer.a));
    if (initializer.kind == Initializer::Kind::normal) {
      std::size_t next = 0;
      for (float& value : values.span()) value += static_cast<float>(initializer.b) * drawn[next++ % drawn.size()];
    }
    store.write_values(index, values);
  }
  store.refresh_compute_copy();
}

nlohmann::ordered_json benchmark(const Options& options, const Group& world) {
  using P = MixedBfloat16;
  models::Gpt<P, Cuda> model(options.model);
  make_up_values(model.store());
  parallel::DataParallel replicas(model, ProcessMesh(world));
  optim::AdamW<P, Cuda> optimizer(model,
                                  {.learning_rate = 6e-4, .beta2 = 0.95, .weight_decay = 0.1, .decay = optim::Decay::matrices});
  const auto body = [&](parallel::Step& step, const auto& place, const auto& tokens, const auto& targets) {
    step.backward(place.first_sample, [&] { return model.loss(tokens, targets); });
    step.update(optimizer, {.clip_norm = 1});
  };
  const Tensor<std::int32_t> tokens = made_up_tokens(options, 7919);
  const Tensor<std::int32_t> targets = made_up_tokens(options, 104729);
  return measure_training({.begin = [&](bool recorded) { return steps_of(recorded, replicas, body, tokens, targets); },
                           .unit = "tokens",
                           .per_step = options.batch * options.model.block,
                           .steps = options.steps});
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  std::string fp8 = "none";
  CommandLine command("Training steps of a GPT-2 on one GPU, in mixed bfloat16; the defaults are the 124M model.");
  command.options_of(options.model);
  command.option("--fp8", fp8, "8-bit products in the blocks, by which scaling", {"none", "current", "delayed"});
  command.option("--batch", options.batch, "sequences");
  command.option("--steps", options.steps, "timed steps");
  if (const auto code = command.parse(argc, argv)) return *code;
  options.model.fp8 = float8_scaling_named(fp8);
  return run_on_gpu([&](const Group& world) { return benchmark(options, world); });
}
