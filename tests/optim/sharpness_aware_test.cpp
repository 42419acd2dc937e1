// Two passes for each step: up the slope, then down from there.

#include "trireme/optim/sharpness_aware.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "catch.hpp"
#include "trireme/core/error.hpp"
#include "trireme/optim/sgd.hpp"
#include "trireme/parallel/data_parallel.hpp"
#include "trireme/testing/ranks.hpp"
#include "trireme/trireme.hpp"

using namespace trireme;

TEST_CASE("the gradients of a step are those of the values up the slope") {
  Model model(DType::float32);
  FlatStore& store = model.store();
  const int weight = store.add("weight", {2}, Initializer::constant(0));
  const int frozen = store.add("frozen", {2}, Initializer::constant(5));
  store.freeze(frozen);
  store.initialize<float>(1);
  float* values = store.values<float>(weight).data();
  values[0] = 3;
  values[1] = -1;
  optim::Sgd<Float32> optimizer(model, {.learning_rate = 0.1});
  optim::SharpnessAware<Float32> sharpness(model, {.radius = 0.5});
  double w[2] = {3, -1};
  for (int number = 0; number < 4; ++number) {
    // The loss 1/2 w0^2 + 2 w1^2 has the gradient (w0, 4 w1), of which the plane holds the half.
    const auto write = [&] {
      store.gradient<float>(weight).data()[0] = values[0] / 2;
      store.gradient<float>(weight).data()[1] = 4 * values[1] / 2;
      const double norm = std::hypot(values[0], 4 * values[1]);
      return StepSummary{.target_weight = 1, .gradient_scale = 2, .gradient_norm = norm, .used = {true, false}};
    };
    const auto version = store.version(weight);
    CHECK(sharpness.climb(write()));
    CHECK(sharpness.has_climbed());
    CHECK(store.version(weight) > version);
    CHECK_THROWS_WITH(sharpness.climb(write()), ContainsSubstring("climb() was called twice"));
    store.clear_gradients();
    const StepSummary summary = write();
    sharpness.descend();
    CHECK(values[0] == Approx(w[0]));
    optimizer.step(summary);
    const double norm = std::hypot(w[0], 4 * w[1]);
    const double up[2] = {w[0] + 0.5 * w[0] / norm, w[1] + 0.5 * 4 * w[1] / norm};
    w[0] -= 0.1 * up[0];
    w[1] -= 0.1 * 4 * up[1];
    CHECK(values[0] == Approx(w[0]));
    CHECK(values[1] == Approx(w[1]));
  }
  CHECK(store.values<float>(frozen).data()[1] == 5);
}

TEST_CASE("where the first pass is not finite, or has no slope, the values stay") {
  Model model(DType::float32);
  FlatStore& store = model.store();
  const int weight = store.add("weight", {2}, Initializer::constant(1));
  store.initialize<float>(1);
  optim::SharpnessAware<Float32> sharpness(model);
  CHECK_FALSE(sharpness.climb({.gradient_norm = std::numeric_limits<double>::infinity(), .used = {true}}));
  sharpness.descend();
  store.zero_gradient(weight);
  CHECK(sharpness.climb({.used = {true}}));
  CHECK(store.values<float>(weight).data()[0] == 1);
  sharpness.descend();
  CHECK_THROWS_WITH(optim::SharpnessAware<Float32>(model, {.radius = 0}), ContainsSubstring("above 0, got 0"));
  CHECK_THROWS_WITH(sharpness.climb({.store = store.serial() + 1}), ContainsSubstring("another model"));
}

namespace {

template <typename P>
std::vector<float> train(const Group& world, parallel::Sharding sharding) {
  struct Net : nn::Module<P> {
    nn::Linear<P> hidden{*this, "hidden", {.in = 6, .out = 37}};
    nn::Dropout<P> drop{*this, "drop", 0.2};
    nn::Linear<P> output{*this, "output", {.in = 37, .out = 5}};
  } model;
  model.initialize({.seed = 1});
  parallel::DataParallel replicas(model, ProcessMesh(world),
                                  {.sharding = sharding, .buckets = {.bytes = 500, .first_bytes = 64, .slice_bytes = 500}});
  optim::AdamW<P> optimizer(model, {.learning_rate = 0.01, .epsilon = 1e-3});
  optim::SharpnessAware<P> sharpness(model, {.radius = 0.1});
  for (int number = 0; number < 4; ++number) {
    Tensor<typename P::Compute> x({8 / world.size(), 6});
    Tensor<std::int32_t> targets({8 / world.size()});
    const std::int64_t first = number * 8 + world.rank() * x.dim(0);
    for (std::int64_t i = 0; i < x.numel(); ++i) {
      x.data()[i] = static_cast<typename P::Compute>(static_cast<float>((first * 6 + i) * 31 % 17 - 8) / 8);
    }
    for (std::int64_t row = 0; row < x.dim(0); ++row) targets.data()[row] = static_cast<std::int32_t>((first + row) % 5);
    std::vector<double> losses;
    const auto loss = [&] {
      const auto result = cross_entropy(model.output.forward(model.drop.forward(tanh(model.hidden.forward(x)))), targets);
      losses.push_back(result.sum.value().item());
      return result;
    };
    for (const double radius : {0.0, 0.1}) {  // twice the same random numbers: without a climb twice the same loss
      parallel::Step step = replicas.begin(number);
      step.backward(Range{first, first + x.dim(0)}, loss);
      const StepSummary& summary = step.finish();
      if (radius > 0) require(sharpness.climb(summary), "no climb");
    }
    require(losses[0] == losses[1], "step {}: losses of {} and {}", number, losses[0], losses[1]);
    parallel::Step step = replicas.begin(number);
    step.backward(Range{first, first + x.dim(0)}, loss);
    require(losses[2] != losses[1], "step {} did not climb", number);
    step.finish();
    sharpness.descend();
    step.update(optimizer, {.clip_norm = 1});
  }
  const auto values = model.store().template values<float>().span();
  return {values.begin(), values.end()};
}

template <typename P>
void compare(double tolerance) {
  std::vector<std::vector<float>> results;
  for (const auto& [ranks, sharding] : {std::pair(1, parallel::Sharding::none), std::pair(2, parallel::Sharding::none),
                                        std::pair(2, parallel::Sharding::optimizer)}) {
    std::vector<std::vector<float>> of_ranks(static_cast<std::size_t>(ranks));
    testing::run_ranks(ranks, [&, kind = sharding](const Group& world) {
      of_ranks[static_cast<std::size_t>(world.rank())] = train<P>(world, kind);
    });
    CHECK(of_ranks.front() == of_ranks.back());
    results.push_back(of_ranks.front());
  }
  for (const auto& result : results) {
    for (std::size_t at = 0; at < result.size(); ++at) {
      REQUIRE(result[at] == Approx(results[0][at]).margin(tolerance));
    }
  }
}

}  // namespace

TEST_CASE("ranks climb together, whether they share the optimizer's work or not") {
  compare<Float32>(1e-5);
  compare<MixedBfloat16>(1e-2);
  compare<MixedFloat16>(5e-3);
}
