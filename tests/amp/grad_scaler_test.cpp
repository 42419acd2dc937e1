#include "trireme/amp/grad_scaler.hpp"

#include <limits>

#include "catch.hpp"
#include "trireme/core/error.hpp"
#include "trireme/nn/layers.hpp"
#include "trireme/optim/adamw.hpp"
#include "trireme/parallel/data_parallel.hpp"
#include "trireme/testing/ranks.hpp"

using namespace trireme;

namespace {

struct FakeOptimizer {
  struct Options {};
  int steps = 0;
  int skips = 0;
  double gradient_scale = 0;
  void step(const StepSummary& summary, const Options&) {
    ++steps;
    gradient_scale = summary.gradient_scale;
  }
  void skip_step() { ++skips; }
};

const StepSummary in_range{.gradient_scale = 1, .gradient_norm = 2};
const StepSummary overflown{.gradient_scale = 1, .gradient_norm = std::numeric_limits<double>::infinity()};

}  // namespace

TEST_CASE("an iteration is at most one unscale and one step for each optimizer, then update") {
  amp::GradScaler scaler({.init_scale = 8});
  FakeOptimizer first;
  FakeOptimizer second;
  StepSummary summary = in_range;

  CHECK_THROWS_AS(scaler.update(), Error);  // nothing was looked at
  scaler.unscale(first, summary);
  CHECK(summary.gradient_norm == 0.25);
  CHECK_THROWS_AS(scaler.unscale(first, summary), Error);
  CHECK(scaler.step(first, summary));
  CHECK(first.gradient_scale == 0.125);  // unscaled once
  CHECK_THROWS_AS(scaler.step(first, summary), Error);
  CHECK_THROWS_AS(scaler.unscale(first, summary), Error);
  CHECK(scaler.step(second, in_range));  // another optimizer has a state of its own
  CHECK(second.gradient_scale == 0.125);
  scaler.update();
  CHECK(scaler.step(first, in_range));
}

TEST_CASE("one optimizer's overflow skips its step and lowers the scale for all") {
  amp::GradScaler scaler({.init_scale = 8});
  FakeOptimizer bad;
  FakeOptimizer good;
  CHECK_FALSE(scaler.step(bad, overflown));
  CHECK(scaler.step(good, in_range));
  scaler.update();
  CHECK((bad.steps == 0 && bad.skips == 1 && good.steps == 1));
  CHECK(scaler.scale() == 4);
  CHECK(scaler.skipped_steps() == 1);

  amp::GradScaler resumed({.init_scale = 1});
  resumed.set_state(scaler.state());
  CHECK(resumed.scale() == 4);
  resumed.update(32);
  CHECK(resumed.scale() == 32);
  CHECK_THROWS_AS(resumed.update(std::numeric_limits<double>::infinity()), Error);
}

TEST_CASE("a disabled scaler passes everything through") {
  amp::GradScaler scaler({.enabled = false});
  FakeOptimizer optimizer;
  CHECK(scaler.scale() == 1);
  CHECK(scaler.step(optimizer, overflown));
  scaler.update();
  CHECK(optimizer.steps == 1);
}

TEST_CASE("an overflow on one rank makes all ranks skip the same step, which changes nothing") {
  for (const auto sharding : {parallel::Sharding::off, parallel::Sharding::on}) {
    testing::run_ranks(3, [&](const Group& world) {
      struct Net : nn::Module<MixedFloat16> {
        nn::Linear<MixedFloat16> layer{*this, "layer", {.in = 4, .out = 4}};
      } net;
      net.initialize({.seed = 3});
      parallel::DataParallel data_parallel(net, ProcessMesh(world), {.sharding = sharding});
      optim::AdamW<MixedFloat16> optimizer(net.store(), {.learning_rate = 0.1});
      amp::GradScaler scaler({.init_scale = 1024});
      const auto values = [&] {
        const auto all = net.store().values<float>().span();
        return std::vector<float>(all.begin(), all.end());
      };
      for (int step = 0; step < 4; ++step) {
        const std::vector<float> before = values();
        const bool overflows = step == 1 && world.rank() == 2;
        auto reduction = data_parallel.begin_step();
        Tape tape;
        reduction.listen(tape);
        const auto x = Tensor<float16>::full({2, 4}, float16(overflows ? 60000.0F : 0.5F));
        const auto wide = scale(net.layer.forward(Variable<float16>(x)), overflows ? 1e4F : 1.0F);
        const auto loss = cross_entropy(wide, Tensor<std::int32_t>::from({2}, std::vector<std::int32_t>{0, 1}));
        scaler.scale(loss).backward();
        reduction.add(loss);
        const bool stepped = scaler.step(optimizer, reduction.finish());
        scaler.update();
        world.agree([&] {
          require(stepped == (step != 1), "rank {} {} step {}", world.rank(), stepped ? "took" : "skipped", step);
          require((before == values()) == (step == 1), "rank {}: values and step {}", world.rank(), step);
          require(scaler.scale() == (step == 0 ? 1024 : 512), "rank {}: scale {}", world.rank(), scaler.scale());
          for (int index = 0; index < net.store().num_parameters(); ++index) {
            const auto master = net.store().values<float>(index);
            const auto rounded = net.store().compute_values<float16>(index);
            for (std::int64_t i = 0; i < master.numel(); ++i) {
              require(float16(master.data()[i]).bits() == rounded.data()[i].bits(), "element {} was not rounded", i);
            }
          }
        });
      }
    });
  }
}
