#include "trireme/optim/optimizer.hpp"

#include "catch.hpp"
#include "trireme/core/error.hpp"
#include "trireme/optim/adamw.hpp"
#include "trireme/optim/schedule.hpp"
#include "trireme/optim/sgd.hpp"

using namespace trireme;

namespace {

// Keeps what update() was given.
class Recorder final : public optim::Optimizer<Float32> {
 public:
  explicit Recorder(FlatStore& store, optim::Decay decay = optim::Decay::all) : Optimizer(store, 0.5, decay) {}
  optim::Settings settings() const override { return {}; }
  std::vector<Run> runs;

 private:
  void update(const Run& run) override { runs.push_back(run); }
};

struct Model {
  FlatStore store{DType::float32};
  int bias = store.add("bias", {16}, Initializer::constant(1));
  int weight = store.add("weight", {4, 8}, Initializer::constant(1));
  int last = store.add("last", {5, 7}, Initializer::constant(1));

  StepSummary summary(std::vector<bool> used = {true, true, true}) const {
    return {.kept = 1, .gradient_scale = 2, .gradient_norm = 4, .used = std::move(used)};
  }
};

}  // namespace

TEST_CASE("an optimizer sees neighbouring parameters as one run") {
  Model model;
  Recorder optimizer(model.store);
  optimizer.step(model.summary());
  REQUIRE(optimizer.runs.size() == 1);
  CHECK(optimizer.runs[0].offset == 0);
  CHECK(optimizer.runs[0].count == 48 + 32 + 16);  // last with its gap, weight, bias
  CHECK(optimizer.runs[0].step == 1);
  CHECK(optimizer.runs[0].gradient_scale == 2);
}

TEST_CASE("decay, use and the number of updates split runs") {
  Model model;
  Recorder optimizer(model.store, optim::Decay::matrices);
  optimizer.step(model.summary());
  REQUIRE(optimizer.runs.size() == 2);
  CHECK(optimizer.runs[0].decays);
  CHECK_FALSE(optimizer.runs[1].decays);
  optimizer.runs.clear();
  optimizer.step(model.summary({true, false, true}));  // `weight` was not used
  REQUIRE(optimizer.runs.size() == 2);
  CHECK(optimizer.runs[0].count == 35);
  CHECK(optimizer.runs[1].offset == 80);
  optimizer.runs.clear();
  optimizer.step(model.summary());
  REQUIRE(optimizer.runs.size() == 3);
  CHECK(optimizer.runs[0].step == 3);
  CHECK(optimizer.runs[1].step == 2);
}

TEST_CASE("clipping scales by the norm of the mean gradient") {
  Model model;
  Recorder optimizer(model.store);
  optimizer.step(model.summary(), {.clip_norm = 1});
  CHECK(optimizer.runs[0].gradient_scale == Approx(2.0 / (4 + 1e-6)));
  optimizer.runs.clear();
  optimizer.step(model.summary(), {.clip_norm = 5});
  CHECK(optimizer.runs[0].gradient_scale == 2);
  CHECK_THROWS_AS(optimizer.step(model.summary(), {.clip_norm = -1}), Error);
}

TEST_CASE("optimizers and schedules refuse what makes no sense") {
  Model model;
  CHECK_THROWS_AS(optim::AdamW<Float32>(model.store, {.beta1 = 1}), Error);
  CHECK_THROWS_AS(optim::AdamW<Float32>(model.store, {.epsilon = -1}), Error);
  CHECK_THROWS_AS(optim::Sgd<Float32>(model.store, {.nesterov = true}), Error);
  CHECK_THROWS_AS(optim::Sgd<Float32>(model.store, {.momentum = -0.1}), Error);
  CHECK_THROWS_AS(optim::warmup_cosine({.warmup = 5, .total = 4}), Error);
  CHECK_THROWS_AS(optim::cosine(1, 0, 0), Error);
}
