#include "models/cuda_compare.hpp"
#include "trireme/models/gpt.hpp"
#include "trireme/optim/adamw.hpp"

// A GPT on the GPU against the same one on the CPU, which other tests compare with PyTorch.
using namespace trireme;
using namespace trireme::tests;

namespace {

constexpr models::GptOptions options{.layers = 2, .heads = 4, .width = 64, .block = 32, .vocabulary = 96, .dropout = 0.1};

struct Batch {
  Tensor<std::int32_t> tokens;
  Tensor<std::int32_t> targets;
};

Batch random_batch(std::uint32_t seed) {
  std::mt19937 generator(seed);
  const Batch batch{random_tokens({3, 32}, options.vocabulary, generator),
                    random_tokens({3, 32}, options.vocabulary, generator)};
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
std::vector<double> train(int steps) {
  models::Gpt<P, D> model(options);
  model.initialize({.seed = 1});
  optim::AdamW<P, D> optimizer(model.store(), {.learning_rate = 1e-3, .weight_decay = 0.1});
  std::vector<double> losses;
  for (int step = 0; step < steps; ++step) {
    losses.push_back(pass(model, random_batch(static_cast<std::uint32_t>(step)), static_cast<std::uint64_t>(step)));
    const std::size_t parameters = static_cast<std::size_t>(model.store().num_parameters());
    optimizer.step({.loss_sum = losses.back(), .kept = 1, .used = std::vector<bool>(parameters, true)});
  }
  return losses;
}

}  // namespace

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
    CHECK(there[step] == Approx(here[step]).epsilon(std::is_same_v<TestType, Float32> ? 1e-4 : 2e-2));
  }
}

TEST_CASE("in float32 the GPU gives the same bits twice") { CHECK(train<Float32, Cuda>(5) == train<Float32, Cuda>(5)); }
