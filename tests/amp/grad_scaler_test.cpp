#include "trireme/amp/grad_scaler.hpp"

#include <limits>

#include "amp/overflow_run.hpp"
#include "catch.hpp"
#include "trireme/core/error.hpp"
#include "trireme/testing/ranks.hpp"

using namespace trireme;

namespace {

struct FakeOptimizer {
  struct Options {};
  int steps = 0;
  int skips = 0;
  double gradient_scale = 0;
  bool step(const StepSummary& summary, const Options&) {
    ++steps;
    gradient_scale = summary.gradient_scale;
    return true;
  }
  void skip_step() { ++skips; }
  static StepSummary decidable(StepSummary summary) { return summary; }
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
  testing::run_ranks(3, tests::expect_all_skip_the_overflow);
}
