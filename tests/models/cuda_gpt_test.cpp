#include "models/cuda_compare.hpp"
#include "trireme/amp/grad_scaler.hpp"
#include "trireme/autograd/step_graph.hpp"
#include "trireme/device/cuda.hpp"
#include "trireme/models/gpt.hpp"
#include "trireme/optim/adamw.hpp"
#include "trireme/optim/named.hpp"
#include "trireme/optim/summary.hpp"

// A GPT on the GPU against the same one on the CPU, which other tests compare with PyTorch.
using namespace trireme;
using namespace trireme::tests;

namespace {

constexpr models::GptOptions options{.layers = 2, .heads = 4, .width = 64, .block = 32, .vocabulary = 96, .dropout = 0.1};

using GptGraph = StepGraph<Cuda, std::int32_t, std::int32_t>;  // of tokens and targets

struct Batch {
  Tensor<std::int32_t> tokens;
  Tensor<std::int32_t> targets;
};

// Each token is its own target, which can be learned.
Batch random_batch(std::uint32_t seed) {
  std::mt19937 generator(seed), again(seed);
  const Batch batch{random_tokens({3, 32}, options.vocabulary, generator), random_tokens({3, 32}, options.vocabulary, again)};
  batch.targets.span()[5] = ops::ignored_target;
  return batch;
}

// One forward and backward pass; the mean loss.
template <typename P, typename D>
double pass(const models::Gpt<P, D>& model, const Batch& batch, std::uint64_t step) {
  Tape tape({.seed = 3, .step = step});
  const auto loss = model.loss(batch.tokens.to<D>(), batch.targets.to<D>());
  loss.backward();
  return loss.mean();
}

template <typename P, typename D>
std::vector<double> train(int steps, Float8Scaling fp8 = Float8Scaling::none) {
  models::GptOptions with_scaling = options;
  with_scaling.fp8 = fp8;
  models::Gpt<P, D> model(with_scaling);
  model.initialize({.seed = 1});
  optim::AdamW<P, D> optimizer(model, {.learning_rate = 1e-3, .weight_decay = 0.1});
  std::vector<double> losses;
  for (int step = 0; step < steps; ++step) {
    losses.push_back(pass(model, random_batch(static_cast<std::uint32_t>(step)), static_cast<std::uint64_t>(step)));
    const std::size_t parameters = static_cast<std::size_t>(model.store().num_parameters());
    optimizer.step({.loss_sum = losses.back(), .target_weight = 1, .used = std::vector<bool>(parameters, true)});
  }
  return losses;
}

struct Trained {
  std::vector<double> losses;
  std::vector<float> values;
  bool operator==(const Trained&) const = default;
};

// Steps whose learning rate, loss scale, clipping and dropout change from one to the next.
template <typename P>
Trained train_by_graph(bool recorded, const amp::GradScalerOptions& scaling, Float8Scaling fp8 = Float8Scaling::none,
                       const std::string& optimizer_name = "adamw") {
  models::GptOptions with_scaling = options;
  with_scaling.fp8 = fp8;
  models::Gpt<P, Cuda> model(with_scaling);
  model.initialize({.seed = 1});
  const auto optimizer = optim::make_optimizer<P, Cuda>(optimizer_name, model, {.weight_decay = 0.1});
  amp::GradScaler scaler(scaling);
  GptGraph graph(model.store(),
                 [&](const TapeOptions& at, const auto& tokens, const auto& targets) {
                   Tape tape(at);
                   const auto loss = model.loss(tokens, targets);
                   scaler.scale(loss).backward();
                   const StepSummary summary = optim::summarize(model.store(), loss);
                   scaler.step(*optimizer, summary, {.clip_norm = 0.5});
                   scaler.update();
                   return summary;
                 },
                 {.enabled = recorded});
  Trained trained;
  for (std::uint64_t step = 0; step < 8; ++step) {
    optimizer->set_learning_rate(1e-3 / static_cast<double>(step + 1));
    const Batch batch = random_batch(static_cast<std::uint32_t>(step));
    graph.run({.seed = 3, .step = step, .first_sample = static_cast<std::int64_t>(3 * step)}, batch.tokens, batch.targets);
    trained.losses.push_back(graph.last_result().loss);
  }
  CHECK(graph.is_recorded() == recorded);
  trained.losses.push_back(scaler.scale());
  trained.losses.push_back(static_cast<double>(optimizer->skipped_steps()));
  const Tensor<float> values = model.store().template values<float, Cuda>().template to<Cpu>();
  trained.values.assign(values.data(), values.data() + values.numel());
  return trained;
}

// Of this model: some of the steps are skipped, before and after one is recorded, the others are taken.
constexpr amp::GradScalerOptions overflows_now_and_then{.init_scale = 0x1p22, .growth_interval = 3};

void require_steps_of_both_kinds(const Trained& trained) {
  const double skipped = trained.losses.back();
  CHECK(skipped > 0);
  CHECK(skipped < 6);
}

}  // namespace

TEMPLATE_TEST_CASE("steps that are launched as a graph give the bits of eager ones", "", Float32, MixedBfloat16) {
  CHECK(train_by_graph<TestType>(true, {.enabled = false}) == train_by_graph<TestType>(false, {.enabled = false}));
}

TEST_CASE("LAMB and LARS, which need norms of parameters, are recorded too") {
  for (const char* name : {"lamb", "lars"}) {
    CAPTURE(name);
    const auto train = [&](bool recorded) {
      return train_by_graph<MixedFloat16>(recorded, overflows_now_and_then, Float8Scaling::none, name);
    };
    const Trained launched = train(true);
    CHECK(launched == train(false));
    require_steps_of_both_kinds(launched);
  }
}

TEST_CASE("8-bit products with delayed scaling give the bits of eager steps too") {
  if (!device::cuda_device(device::current_cuda_device()).has_float8_products()) return;
  const auto train = [](bool recorded) {
    return train_by_graph<MixedBfloat16>(recorded, {.enabled = false}, Float8Scaling::delayed);
  };
  CHECK(train(true) == train(false));
}

TEST_CASE("the loss scale of float16 changes between launches of a graph") {
  const Trained launched = train_by_graph<MixedFloat16>(true, overflows_now_and_then);
  CHECK(launched == train_by_graph<MixedFloat16>(false, overflows_now_and_then));
  require_steps_of_both_kinds(launched);
}

TEST_CASE("inputs of other shapes and steps that wait run without the graph") {
  models::Gpt<Float32, Cuda> model(options);
  model.initialize({.seed = 1});
  optim::AdamW<Float32, Cuda> optimizer(model, {});
  const auto train_step = [&](const TapeOptions& at, const auto& tokens, const auto& targets) {
    Tape tape(at);
    const auto loss = model.loss(tokens, targets);
    loss.backward();
    const StepSummary summary = optim::summarize(model.store(), loss);
    optimizer.step(summary);
    return summary;
  };
  GptGraph graph(model.store(), train_step);
  GptGraph waits(model.store(), [&](const TapeOptions& at, const auto& tokens, const auto& targets) {
    const StepSummary summary = train_step(at, tokens, targets);
    const double loss = optim::read<Cuda>(summary).loss();  // not within CHECK, which takes what is thrown
    CHECK(loss > 0);
    return summary;
  });
  for (std::uint64_t step = 0; step < 5; ++step) {
    const Batch batch = random_batch(static_cast<std::uint32_t>(step));
    const bool shorter = step == 4;
    const auto part = [&](const Tensor<std::int32_t>& all) { return shorter ? all.narrow(0, 2) : all; };
    graph.run({.step = step}, part(batch.tokens), part(batch.targets));
    waits.run({.step = step}, batch.tokens, batch.targets);
    CHECK(std::isfinite(graph.last_result().loss));
    CHECK(waits.last_result().loss < 2 * std::log(static_cast<double>(options.vocabulary)));
  }
  CHECK(graph.is_recorded());
  CHECK_FALSE(waits.is_recorded());
  const Batch batch = random_batch(0);
  CHECK_THROWS_WITH(graph.run({.seed = 8}, batch.tokens, batch.targets), ContainsSubstring("recorded with the seed 0"));
}

TEMPLATE_TEST_CASE("the loss and the gradients of a GPT are those of the CPU", "", Float32, MixedBfloat16, MixedFloat16) {
  using P = TestType;
  models::Gpt<P, Cpu> here(options);
  models::Gpt<P, Cuda> there(options);
  here.initialize({.seed = 1});
  there.initialize({.seed = 1});
  const Batch batch = random_batch(7);
  const bool exact = std::is_same_v<P, Float32>;
  CHECK(pass(there, batch, 0) == Approx(pass(here, batch, 0)).epsilon(exact ? 1e-5 : 1e-2));
  CHECK(distance(gradients(there), gradients(here)) < (exact ? 1e-4 : 3e-2));
}

TEMPLATE_TEST_CASE("a GPT on the GPU learns as one on the CPU", "", Float32, MixedBfloat16) {
  const std::vector<double> there = train<TestType, Cuda>(10);
  const std::vector<double> here = train<TestType, Cpu>(10);
  for (std::size_t step = 0; step < here.size(); ++step) {
    CAPTURE(step);
    CHECK(there[step] == Approx(here[step]).epsilon(std::is_same_v<TestType, Float32> ? 1e-4 : 2e-3));
  }
}

TEST_CASE("a GPT of 8-bit products on the GPU learns as one on the CPU") {
  if (!device::cuda_device(device::current_cuda_device()).has_float8_products()) return;
  for (const Float8Scaling scaling : {Float8Scaling::current, Float8Scaling::delayed}) {
    const std::vector<double> there = train<MixedBfloat16, Cuda>(10, scaling);
    const std::vector<double> here = train<MixedBfloat16, Cpu>(10, scaling);
    for (std::size_t step = 0; step < here.size(); ++step) {
      CAPTURE(static_cast<int>(scaling), step);
      CHECK(there[step] == Approx(here[step]).epsilon(5e-3));
    }
  }
}

TEST_CASE("in float32 the GPU gives the same bits twice") { CHECK(train<Float32, Cuda>(5) == train<Float32, Cuda>(5)); }
