#include "models/cuda_compare.hpp"
#include "trireme/device/cuda.hpp"
#include "trireme/models/architectures/gpt.hpp"
#include "trireme/optim/adamw.hpp"
#include "trireme/optim/named.hpp"
#include "trireme/optim/summary.hpp"
#include "trireme/parallel/step_graph.hpp"
#include "trireme/testing/ranks.hpp"

// A GPT on the GPU against the same one on the CPU, which other tests compare with PyTorch.
using namespace trireme;
using namespace trireme::tests;

namespace {

constexpr models::GptOptions options{.layers = 2, .heads = 4, .width = 64, .block = 32, .vocabulary = 96, .dropout = 0.1};

using GptGraph = parallel::StepGraph<Cuda, std::int32_t, std::int32_t>;  // of tokens and targets

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

// Of this model in float16: some of the steps are skipped, before and after one is recorded, the others are taken.
constexpr amp::GradScalerOptions overflows_now_and_then{.init_scale = 0x1p22, .growth_interval = 3};

// Steps with a learning rate, loss scale, clipping and dropout that change from step to step. `plain`: every third step runs
// without the graph, so the host updates its scale.
template <typename P>
Trained train_by_graph(const Group& world, bool recorded, Float8Scaling fp8 = Float8Scaling::none,
                       const std::string& optimizer_name = "adamw", bool plain = false) {
  models::GptOptions with_scaling = options;
  with_scaling.fp8 = fp8;
  models::Gpt<P, Cuda> model(with_scaling, ModelContext{.seed = 3});
  model.initialize({.seed = 1});
  parallel::DataParallel replicas(model, ProcessMesh(world), {.loss_scale = overflows_now_and_then});
  const auto optimizer = optim::make_optimizer<P, Cuda>(optimizer_name, model, {.weight_decay = 0.1});
  GptGraph graph(replicas,
                 [&](parallel::Step& step, const auto& place, const auto& tokens, const auto& targets) {
                   step.backward(place.first_sample, [&] { return model.loss(tokens, targets); });
                   step.update(*optimizer, {.clip_norm = 0.5});
                 },
                 {.enabled = recorded});
  Trained trained;
  for (std::int64_t number = 0; number < 8; ++number) {
    const Batch batch = random_batch(static_cast<std::uint32_t>(number));
    if (plain && number % 3 == 2) {
      parallel::Step step = replicas.begin(number);
      step.backward(Range{3 * number, 3 * number + 3},
                    [&] { return model.loss(batch.tokens.template to<Cuda>(), batch.targets.template to<Cuda>()); });
      step.update(*optimizer, {.clip_norm = 0.5, .non_finite = optim::NonFinitePolicy::skip});
      trained.losses.push_back(step.finish().loss());
      continue;
    }
    graph.run({.number = number, .first_sample = 3 * number, .learning_rate = 1e-3 / static_cast<double>(number + 1)},
              batch.tokens, batch.targets);
    trained.losses.push_back(graph.last_result().loss);
  }
  CHECK(graph.is_recorded() == recorded);
  trained.losses.push_back(replicas.scaler().scale());
  trained.losses.push_back(static_cast<double>(optimizer->skipped_steps()));
  const Tensor<float> values = model.store().template values<float, Cuda>().template to<Cpu>();
  trained.values.assign(values.data(), values.data() + values.numel());
  return trained;
}

void require_steps_of_both_kinds(const Trained& trained) {
  const double skipped = trained.losses.back();
  CHECK(skipped > 0);
  CHECK(skipped < 6);
}

}  // namespace

TEMPLATE_TEST_CASE("steps that are launched as a graph give the bits of eager ones", "", Float32, MixedBfloat16) {
  testing::run_ranks(
      1, [](const Group& world) { CHECK(train_by_graph<TestType>(world, true) == train_by_graph<TestType>(world, false)); });
}

TEST_CASE("LAMB and LARS, which need norms of parameters, are recorded too") {
  testing::run_ranks(1, [](const Group& world) {
    for (const char* name : {"lamb", "lars"}) {
      CAPTURE(name);
      const auto train = [&](bool recorded) {
        return train_by_graph<MixedFloat16>(world, recorded, Float8Scaling::none, name);
      };
      const Trained launched = train(true);
      CHECK(launched == train(false));
      require_steps_of_both_kinds(launched);
    }
  });
}

TEST_CASE("8-bit products with delayed scaling give the bits of eager steps too") {
  if (!device::cuda_device(device::current_cuda_device()).has_float8_products()) return;
  testing::run_ranks(1, [](const Group& world) {
    const auto train = [&](bool recorded) { return train_by_graph<MixedBfloat16>(world, recorded, Float8Scaling::delayed); };
    CHECK(train(true) == train(false));
  });
}

TEST_CASE("the loss scale of float16 changes between launches of a graph") {
  testing::run_ranks(1, [](const Group& world) {
    const Trained launched = train_by_graph<MixedFloat16>(world, true);
    CHECK(launched == train_by_graph<MixedFloat16>(world, false));
    require_steps_of_both_kinds(launched);
    const Trained mixed = train_by_graph<MixedFloat16>(world, true, Float8Scaling::none, "adamw", true);
    CHECK(mixed == train_by_graph<MixedFloat16>(world, false, Float8Scaling::none, "adamw", true));
    require_steps_of_both_kinds(mixed);
  });
}

TEST_CASE("inputs of other shapes and steps that wait run without the graph") {
  testing::run_ranks(1, [](const Group& world) {
    models::Gpt<Float32, Cuda> model(options);
    model.initialize();
    parallel::DataParallel replicas(model, ProcessMesh(world));
    optim::AdamW<Float32, Cuda> optimizer(model, {});
    const auto train_step = [&](parallel::Step& step, const auto& place, const auto& tokens, const auto& targets) {
      step.backward(place.first_sample, [&] { return model.loss(tokens, targets); });
      step.update(optimizer);
    };
    GptGraph graph(replicas, train_step);
    GptGraph waits(replicas, [&](parallel::Step& step, const auto& place, const auto& tokens, const auto& targets) {
      train_step(step, place, tokens, targets);
      const double loss = optim::read<Cuda>(step.finish()).loss();  // not within CHECK, which takes what is thrown
      CHECK(loss > 0);
    });
    for (std::int64_t number = 0; number < 5; ++number) {
      const Batch batch = random_batch(static_cast<std::uint32_t>(number));
      const bool shorter = number == 4;
      const auto part = [&](const Tensor<std::int32_t>& all) { return shorter ? all.narrow(0, 2) : all; };
      graph.run({.number = number}, part(batch.tokens), part(batch.targets));
      waits.run({.number = number}, batch.tokens, batch.targets);
      CHECK(std::isfinite(graph.last_result().loss));
      CHECK(waits.last_result().loss < 2 * std::log(static_cast<double>(options.vocabulary)));
    }
    CHECK(graph.is_recorded());
    CHECK_FALSE(waits.is_recorded());
    GptGraph own_rate(replicas, [&](parallel::Step& step, const auto& place, const auto& tokens, const auto& targets) {
      step.backward(place.first_sample, [&] { return model.loss(tokens, targets); });
      step.update(optimizer, {.learning_rate = 0.1});
    });
    const Batch batch = random_batch(0);
    CHECK_THROWS_WITH(own_rate.run({}, batch.tokens, batch.targets), ContainsSubstring("takes no learning rate"));
  });
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
