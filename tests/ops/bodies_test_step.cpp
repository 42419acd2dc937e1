#include <limits>

#include "ops/compare.hpp"
#include "ops/elementwise/full_body.hpp"
#include "ops/update/step_body.hpp"
#include "trireme/ops/elementwise/full.hpp"
#include "trireme/ops/update/each_optimizer.hpp"

// The decisions that a GPU makes about a step, by the code that it runs.
using namespace trireme;
using namespace trireme::ops;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

StepNumbers summary_of(float loss, double target_weight, double squares) {
  StepTotals totals;
  AddToTotals<float>{
      .loss = {.element = &loss}, .target_weight = {.element = &target_weight}, .squares = {}, .totals = &totals}(0);
  AddToTotals<double>{.loss = {}, .target_weight = {}, .squares = {squares}, .totals = &totals}(0);
  StepNumbers numbers;
  SummarizeStep{.totals = &totals, .count = 8, .numbers = &numbers}(0);
  return numbers;
}

StepState decided(const StepNumbers& numbers, double clip_norm) {
  StepState state{.scalars = {.learning_rate = 0.25}, .clipped = {}, .skipped = 5};
  DecideStep{.numbers = {.element = &numbers}, .clip_norm = clip_norm, .state = &state}(0);
  return state;
}

}  // namespace

TEMPLATE_TEST_CASE("a number in memory fills a tensor, rounded", "", float, double, bfloat16, float16) {
  using T = TestType;
  const double number = 1.0 / 3;
  Tensor<T> filled({7});
  const Full<T, double> body{{.element = &number}, filled.data()};
  for (std::int64_t i = 0; i < 7; ++i) body(i);
  require_identical(filled, full<T>({7}, Scalar<double>(number)));
  CHECK(static_cast<double>(filled.data()[6]) == Approx(number).epsilon(0.01));
}

TEST_CASE("the summary of a step: the mean's gradients and their norm") {
  const StepNumbers numbers = summary_of(12, 4, 9);
  CHECK(numbers.loss_sum == 12);
  CHECK(numbers.target_weight == 4);
  CHECK(numbers.gradient_scale == 2);
  CHECK(numbers.gradient_norm == 6);
  CHECK(summary_of(0, 0, 0).gradient_scale == 0);
}

TEST_CASE("a finite step is taken, clipped where its norm is too large") {
  const StepNumbers numbers = summary_of(12, 4, 9);
  const StepState free = decided(numbers, 0);
  CHECK_FALSE(free.scalars.skipped);
  CHECK(free.scalars.gradient_scale == 2);
  CHECK(free.scalars.learning_rate == 0.25);
  CHECK(free.clipped.gradient_scale == 1);
  CHECK(free.clipped.learning_rate == 0.25);
  CHECK(free.skipped == 5);
  CHECK(decided(numbers, 7).scalars.gradient_scale == 2);
  CHECK(decided(numbers, 3).scalars.gradient_scale == Approx(1));
}

TEST_CASE("a step that is not finite or has no target is skipped") {
  for (const double squares : {infinity, std::numeric_limits<double>::quiet_NaN()}) {
    const StepState state = decided(summary_of(12, 4, squares), 1);
    CHECK(state.scalars.skipped);
    CHECK(state.clipped.skipped);
    CHECK(state.diverged);
    CHECK(state.skipped == 6);
  }
  CHECK(decided(summary_of(std::numeric_limits<float>::infinity(), 4, 9), 0).skipped == 6);
  const StepState empty = decided(summary_of(0, 0, 0), 0);
  CHECK(empty.scalars.skipped);
  CHECK_FALSE(empty.diverged);
  CHECK(empty.skipped == 5);
}

TEST_CASE("micro-batches add up to the totals of a step") {
  StepTotals totals;
  for (const double part : {1.0, 2.5}) AddToTotals<double>{{2 * part}, {part}, {4 * part}, &totals}(0);
  CHECK(totals.loss_sum == 7);
  CHECK(totals.target_weight == 3.5);
  CHECK(totals.squares == 14);
}

TEST_CASE("words are copied where a condition holds") {
  const std::uint32_t from[] = {1, 2};
  std::uint32_t to[] = {8, 9};
  for (const bool condition : {false, true}) {
    for (std::int64_t word = 0; word < 2; ++word) CopyIf{&condition, from, to}(word);
    CHECK(to[0] == (condition ? 1 : 8));
    CHECK(to[1] == (condition ? 2 : 9));
  }
}

TEST_CASE("updates of used parameters are counted, unless the step is skipped") {
  std::int64_t updates[] = {3, 4};
  const std::int64_t used[] = {1, 0};
  for (const auto& [loss, count] : {std::pair{1.0F, 4}, {std::numeric_limits<float>::quiet_NaN(), 4}, {2.0F, 5}}) {
    const StepState state = decided(summary_of(loss, 4, 9), 0);
    for (std::int64_t parameter = 0; parameter < 2; ++parameter) CountUpdates{&state, used, updates}(parameter);
    CHECK(updates[0] == count);
    CHECK(updates[1] == 4);
  }
}

TEST_CASE("an optimizer's step reads what it does not know where it runs") {
  const StepState state = decided(summary_of(12, 4, 9), 0);
  const std::int64_t updates = 3;
  const AdamStep known{.learning_rate = 0.125, .update = 3, .gradient_scale = 2};
  const AdamStep read{.learning_rate = 0.5, .on_device = {.scalars = &state.scalars, .updates = &updates}};
  const AdamUpdate<double> one(known);
  const AdamUpdate<double> other(resolved(read));
  CHECK_FALSE(is_skipped(read.on_device));
  CHECK(other.step_size == one.step_size);
  CHECK(other.inverse_root_bias_correction2 == one.inverse_root_bias_correction2);
  CHECK(other.gradient_scale == 2);
  CHECK(SgdUpdate<float>(resolved(SgdStep{.on_device = {&state.scalars, &updates}})).first == false);
}

TEST_CASE("formulas of the number of updates read it where they run") {
  const StepState state = decided(summary_of(12, 4, 9), 0);
  const std::int64_t updates = 7;
  const StepOnDevice on_device{.scalars = &state.scalars, .updates = &updates};
  const NadamUpdate<double> nadam(resolved(NadamStep{.learning_rate = 2, .on_device = on_device}));
  const NadamUpdate<double> known_nadam({.learning_rate = 0.5, .update = 7, .gradient_scale = 2});
  CHECK(nadam.moment_rate == known_nadam.moment_rate);
  CHECK(nadam.gradient_rate == known_nadam.gradient_rate);
  CHECK(RadamUpdate<double>(resolved(RadamStep{.learning_rate = 2, .on_device = on_device})).step_size ==
        RadamUpdate<double>({.learning_rate = 0.5, .update = 7}).step_size);
  CHECK(RadamUpdate<double>(resolved(RadamStep{.on_device = on_device})).adapts);
  CHECK(ScheduleFreeAdamWUpdate<double>(resolved(ScheduleFreeAdamWStep{.learning_rate = 2, .on_device = on_device})).share ==
        Approx(1.0 / 7));
  CHECK(MuonUpdate<double>(resolved(MuonStep{.learning_rate = 2, .scale = 3, .on_device = on_device})).rate == 1.5);
  CHECK(AdafactorMeanUpdate<double>(resolved(AdafactorMeanStep{.beta2_decay = -1, .on_device = on_device})).share ==
        Approx(1.0 / 7));
  const UpdateSquares squares{.weight = 16, .update = 36};
  const AdafactorStep adafactor{.learning_rate = 2, .count = 4, .squares = &squares, .on_device = on_device};
  CHECK(adafactor_rate(resolved(adafactor)) == Approx(2 / std::sqrt(7.0) / 3));  // below the rate of 0.5
}

TEST_CASE("LAMB and LARS find the norms of a parameter where they run") {
  const StepState state = decided(summary_of(12, 4, 9), 0);
  const std::int64_t updates = 3;
  const StepOnDevice on_device{.scalars = &state.scalars, .updates = &updates};
  UpdateSquares squares{.weight = 16, .update = 4};
  CHECK(
      LambUpdate<double>(resolved(LambStep{.learning_rate = 0.5, .squares = &squares, .on_device = on_device})).learning_rate ==
      0.5 * state.scalars.learning_rate * 4 / 2);
  CHECK(trust_ratio(LambStep{.max_norm = 3, .squares = &squares}) == 1.5);
  CHECK(trust_ratio(LambStep{.min_norm = 5, .squares = &squares}) == 2.5);
  CHECK(trust_ratio(LambStep{.max_trust_ratio = 1.25, .squares = &squares}) == 1.25);
  CHECK(trust_ratio(LambStep{.max_trust_ratio = 2.25, .squares = &squares}) == 2);
  CHECK(trust_ratio(LambStep{}) == 1);
  // The gradient is twice what the squares are of.
  CHECK(LarsUpdate<double>(
            resolved(LarsStep{
                .learning_rate = 0.5, .weight_decay = 0.25, .trust = 0.1, .squares = &squares, .on_device = on_device}))
            .learning_rate == 0.5 * state.scalars.learning_rate * (0.1 * 4 / (2 * 2 + 0.25 * 4)));
  CHECK(trust_ratio(LarsStep{}) == 1);
  squares.update = 0;
  CHECK(trust_ratio(LambStep{.squares = &squares}) == 1);
  CHECK(trust_ratio(LarsStep{.squares = &squares}) == 1);
}

TEST_CASE("the loss scale falls with an overflow and grows after a while") {
  LossScale scale{.scale = 1024};
  const LossScaleRules rules{.growth_interval = 2};
  const auto step = [&](double squares) {
    const StepNumbers scaled = summary_of(12, 4, squares);
    StepNumbers unscaled;
    UnscaleStep{&scaled, &scale, &unscaled}(0);
    UpdateLossScale{rules, &scale}(0);
    return unscaled;
  };
  CHECK(step(9).gradient_norm == 6.0 / 1024);
  CHECK(scale.scale == 1024);
  CHECK(step(9).gradient_scale == 2.0 / 1024);
  CHECK(scale.scale == 2048);
  step(infinity);
  CHECK(scale.scale == 1024);
  CHECK(scale.skipped_steps == 1);
  CHECK(scale.growth_tracker == 0);
  CHECK(scale.overflows == 0);
}
