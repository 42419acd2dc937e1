// Slow weights that follow those of an optimizer.

#include "trireme/optim/lookahead.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "catch.hpp"
#include "optim/copy_state.hpp"
#include "trireme/core/error.hpp"
#include "trireme/optim/adamw.hpp"
#include "trireme/optim/sgd.hpp"

using namespace trireme;

namespace {

template <typename P>
struct Trained {
  Model model{{}, DType::float32, dtype_of<typename P::Compute>};
  FlatStore& store = model.store();
  int weight = store.add("weight", {4, 8}, Initializer::constant(1));
  int frozen = store.add("frozen", {16}, Initializer::constant(2));
  std::unique_ptr<optim::AdamW<P>> inside;
  std::unique_ptr<optim::Lookahead<P>> optimizer;

  explicit Trained(const optim::LookaheadOptions& options = {.interval = 3}) {
    store.freeze(frozen);
    inside = std::make_unique<optim::AdamW<P>>(model, optim::AdamWOptions{.learning_rate = 0.1});
    optimizer = std::make_unique<optim::Lookahead<P>>(model, *inside, options);
    store.initialize<float>(1);  // afterwards: the slow weights begin with the first step
  }
  bool step(int number, double norm = 1) {
    const auto gradient = store.gradient<float>(weight).span();
    for (std::size_t at = 0; at < 32; ++at) gradient[at] = std::sin(static_cast<float>(at) + static_cast<float>(3 * number));
    return optimizer->step({.target_weight = 1, .gradient_norm = norm, .used = {true, false}},
                           {.non_finite = optim::NonFinitePolicy::skip});
  }
  std::vector<float> values() {
    const auto values = store.values<float>(weight).span();
    return {values.begin(), values.end()};
  }
  State state() {
    State state;
    store.add_to(state, "model.");
    optimizer->add_to(state);
    return state;
  }
};

}  // namespace

TEST_CASE("every few steps the slow weights follow by a share, and the values are theirs") {
  Model model(DType::float32);
  const int weight = model.store().add("weight", {1}, Initializer::constant(0));
  optim::Sgd<Float32> sgd(model, {.learning_rate = 1});
  optim::Lookahead<Float32> optimizer(model, sgd, {.interval = 2, .share = 0.25});
  model.store().initialize<float>(1);
  float* value = model.store().values<float>(weight).data();
  *value = 8;
  std::vector<float> seen;
  for (int number = 0; number < 5; ++number) {
    *model.store().gradient<float>(weight).data() = 1;
    optimizer.step({.target_weight = 1, .gradient_norm = 1, .used = {true}});
    seen.push_back(*value);
  }
  CHECK(seen == std::vector<float>{7, 7.5, 6.5, 7, 6});  // 8 + (6 - 8) / 4, 7.5 + (5.5 - 7.5) / 4
}

TEST_CASE("between its intervals Lookahead is the optimizer inside") {
  Trained<Float32> slow;
  Model model(DType::float32);
  FlatStore& store = model.store();
  const int weight = store.add("weight", {4, 8}, Initializer::constant(1));
  optim::AdamW<Float32> adamw(model, {.learning_rate = 0.1});
  store.initialize<float>(1);
  for (int number = 0; number < 3; ++number) {
    slow.step(number);
    const auto gradient = store.gradient<float>(weight).span();
    for (std::size_t at = 0; at < 32; ++at) gradient[at] = std::sin(static_cast<float>(at) + static_cast<float>(3 * number));
    adamw.step({.target_weight = 1, .gradient_norm = 1, .used = {true}});
    const auto values = store.values<float>(weight).span();
    CHECK((slow.values() == std::vector<float>(values.begin(), values.end())) == (number < 2));
  }
  CHECK(slow.optimizer->settings().back().value == "a share of 0.5 every 3 steps");
  slow.optimizer->set_learning_rate(0.5);
  CHECK(slow.inside->learning_rate() == 0.5);
  CHECK(slow.optimizer->learning_rate() == 0.5);
}

TEST_CASE("Lookahead goes on from its state, after any step, with the same bits") {
  Trained<MixedBfloat16> whole;
  for (int number = 0; number < 10; ++number) {
    Trained<MixedBfloat16> resumed;
    tests::copy_state(whole.state(), resumed.state());
    whole.step(number);
    resumed.step(number);
    REQUIRE(whole.values() == resumed.values());
    const auto rounded = whole.store.compute_values<bfloat16>(whole.weight).span();
    for (std::size_t at = 0; at < 32; ++at) {
      REQUIRE(static_cast<float>(rounded[at]) == static_cast<float>(bfloat16(whole.values()[at])));
    }
  }
}

TEST_CASE("steps that are left out do not count, and what is frozen stays") {
  Trained<Float32> one;
  Trained<Float32> other;
  for (int number = 0; number < 6; ++number) {
    CHECK_FALSE(other.step(9, std::numeric_limits<double>::quiet_NaN()));
    one.step(number);
    other.step(number);
    CHECK(one.values() == other.values());
  }
  CHECK(other.optimizer->skipped_steps() == 6);
  CHECK(std::ranges::all_of(one.store.values<float>(one.frozen).span(), [](float value) { return value == 2; }));
}

TEST_CASE("who has read values before the slow weights moved is told that they changed") {
  Trained<Float32> trained({.interval = 1});
  const auto version = trained.store.version(trained.weight);
  trained.step(0);
  CHECK(trained.store.version(trained.weight) > version + 1);
}

TEST_CASE("Lookahead refuses options that make no sense, and another model's optimizer") {
  Trained<Float32> one;
  Trained<Float32> other;
  CHECK_THROWS_WITH(optim::Lookahead<Float32>(one.model, *one.inside, {.interval = 0}),
                    ContainsSubstring("Lookahead's interval is above 0, got 0"));
  CHECK_THROWS_WITH(optim::Lookahead<Float32>(one.model, *one.inside, {.share = 1.5}),
                    ContainsSubstring("Lookahead's share lies in (0, 1], got 1.5"));
  optim::Lookahead<Float32> mixed_up(one.model, *other.inside);
  CHECK_THROWS_WITH(mixed_up.step({.target_weight = 1, .used = {true, false}, .store = other.store.serial()}),
                    ContainsSubstring("Lookahead and the optimizer inside it are of two models"));
}
