// The average of schedule-free AdamW, swapped with the trained values.

#include <cmath>
#include <memory>
#include <vector>

#include "catch.hpp"
#include "trireme/core/error.hpp"
#include "trireme/optim/schedule_free_adamw.hpp"

using namespace trireme;

namespace {

template <typename P>
struct Trained {
  Model model{{}, DType::float32, dtype_of<typename P::Compute>};
  FlatStore& store = model.store();
  int weight = store.add("weight", {4, 8}, Initializer::constant(1));
  int unused = store.add("unused", {16}, Initializer::constant(2));
  int frozen = add_frozen();
  optim::ScheduleFreeAdamW<P> optimizer{model, {.learning_rate = 0.1, .groups = {{.pattern = "unused", .beta1 = 0.5}}}};

  Trained() { store.initialize<float>(1); }
  int add_frozen() {
    const int number = store.add("frozen", {16}, Initializer::constant(3));
    store.freeze(number);
    return number;
  }
  void step(int number) {
    const auto gradient = store.gradient<float>(weight).span();
    for (std::size_t at = 0; at < 32; ++at) gradient[at] = std::sin(static_cast<float>(at) + static_cast<float>(3 * number));
    optimizer.step({.target_weight = 1, .gradient_norm = 1, .used = {true, false, false}});
  }
  std::vector<float> values() {
    const auto values = store.values<float>().span();
    return {values.begin(), values.end()};
  }
};

}  // namespace

TEST_CASE("the average is swapped in and out, and the same bits go on") {
  Trained<MixedBfloat16> plain;
  Trained<MixedBfloat16> evaluated;
  for (int number = 0; number < 5; ++number) {
    plain.step(number);
    evaluated.step(number);
    const auto version = evaluated.store.version(evaluated.weight);
    evaluated.optimizer.swap();
    CHECK(evaluated.optimizer.swapped_in());
    CHECK(evaluated.store.version(evaluated.weight) > version);
    CHECK((evaluated.values() == plain.values()) == (number == 0));  // the average of one step is that step
    const auto rounded = evaluated.store.compute_values<bfloat16>(evaluated.weight).span();
    const auto values = evaluated.store.values<float>(evaluated.weight).span();
    for (std::size_t at = 0; at < 32; ++at) {
      REQUIRE(static_cast<float>(rounded[at]) == static_cast<float>(bfloat16(values[at])));
    }
    for (const float value : evaluated.store.values<float>(evaluated.unused).span()) CHECK(value == 2);
    for (const float value : evaluated.store.values<float>(evaluated.frozen).span()) CHECK(value == 3);
    evaluated.optimizer.swap();
    CHECK_FALSE(evaluated.optimizer.swapped_in());
    CHECK(evaluated.values() == plain.values());
  }
}

TEST_CASE("the average is that of the steps, weighed by their squared rates") {
  Model model(DType::float32);
  FlatStore& store = model.store();
  const int weight = store.add("weight", {1}, Initializer::constant(0));
  store.initialize<float>(1);
  float* value = store.values<float>(weight).data();
  *value = 1;
  optim::ScheduleFreeAdamW<Float32> optimizer(model, {.learning_rate = 0.5, .beta1 = 0.75, .beta2 = 0, .warmup = 2});
  double z = 1;
  double x = 1;
  double squares = 0;
  for (int number = 1; number <= 6; ++number) {
    CHECK(*value == Approx(0.25 * z + 0.75 * x));
    *store.gradient<float>(weight).data() = number % 2 == 0 ? -3 : 2;
    optimizer.step({.target_weight = 1, .gradient_norm = 1, .used = {true}});
    const double rate = number == 1 ? 0.25 : 0.5;
    squares += rate * rate;
    z -= rate * (number % 2 == 0 ? -1 : 1);  // beta2 of 0: the sign
    x += rate * rate / squares * (z - x);
    optimizer.swap();
    CHECK(*value == Approx(x));
    optimizer.swap();
  }
}

TEST_CASE("while the average is swapped in there are no steps and no checkpoints") {
  Trained<Float32> trained;
  trained.step(0);
  State state;
  trained.optimizer.add_to(state);
  state.prepare();
  trained.optimizer.swap();
  CHECK_THROWS_WITH(trained.step(1), ContainsSubstring("call swap() first"));
  CHECK_THROWS_WITH(state.prepare(), ContainsSubstring("call swap() first"));
  State other;
  CHECK_THROWS_AS(trained.optimizer.add_to(other), Error);
  trained.optimizer.swap();
  state.prepare();
  trained.step(1);
}

TEST_CASE("schedule-free AdamW refuses options that make no sense") {
  Trained<Float32> trained;
  CHECK_THROWS_WITH(optim::ScheduleFreeAdamW<Float32>(trained.model, {.beta1 = 0}), ContainsSubstring("beta1 lies in (0, 1)"));
  CHECK_THROWS_WITH(optim::ScheduleFreeAdamW<Float32>(trained.model, {.groups = {{.pattern = "w*", .beta1 = 0}}}),
                    ContainsSubstring("beta1 of the parameter group \"w*\" is above 0"));
  CHECK_THROWS_WITH(optim::ScheduleFreeAdamW<Float32>(trained.model, {.warmup = -1}),
                    ContainsSubstring("warmup are 0 or more, got 1e-08 and -1"));
}
