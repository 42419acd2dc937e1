// Checks for every optimizer, whatever its formula.

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "catch.hpp"
#include "optim/copy_state.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/state.hpp"
#include "trireme/optim/adamw_8bit.hpp"
#include "trireme/optim/named.hpp"
#include "trireme/optim/schedule_free_adamw.hpp"

using namespace trireme;

namespace {

// Those that make_optimizer knows, and the others.
std::vector<std::string> all_names() {
  std::vector<std::string> names = optim::optimizer_names();
  names.emplace_back("schedule_free_adamw");
  names.emplace_back("adamw_8bit in blocks");
  return names;
}
template <typename P>
std::unique_ptr<optim::Optimizer<P>> make(const std::string& name, Model& model) {
  if (name == "schedule_free_adamw") {
    return std::make_unique<optim::ScheduleFreeAdamW<P>>(
        model, optim::ScheduleFreeAdamWOptions{.learning_rate = 0.01, .weight_decay = 0.1, .warmup = 3});
  }
  if (name == "adamw_8bit in blocks") {
    return std::make_unique<optim::AdamW8bit<P>>(
        model, optim::AdamW8bitOptions{.learning_rate = 0.01, .weight_decay = 0.1, .min_8bit_size = 0});
  }
  return optim::make_optimizer<P>(name, model, {.learning_rate = 0.01, .weight_decay = 0.1});
}

// Elements in the order of the store: 64 of `last`, 32 of `first`, 16 of `frozen`.
template <typename P>
struct Weights {
  Model model{{}, DType::float32, dtype_of<typename P::Compute>};
  FlatStore& store = model.store();
  int first = store.add("first", {4, 8}, Initializer::constant(1));
  int frozen = store.add("frozen", {16}, Initializer::constant(2));
  int last = store.add("last", {64}, Initializer::constant(3));
  std::unique_ptr<optim::Optimizer<P>> optimizer;

  explicit Weights(const std::string& name) {
    store.freeze(frozen);
    store.initialize<float>(1);
    const auto values = store.values<float>().span();
    for (std::size_t at = 0; at < 96; ++at) values[at] = std::cos(static_cast<float>(at));
    store.refresh_compute_copy();
    optimizer = make<P>(name, model);
  }

  bool step(int number, std::vector<bool> used = {true, false, true}, double norm = 1) {
    const auto gradients = store.gradients<float>().span();
    for (std::size_t at = 0; at < gradients.size(); ++at) {
      gradients[at] = std::sin(static_cast<float>(at) + static_cast<float>(3 * number));
    }
    return optimizer->step({.target_weight = 1, .gradient_scale = 0.5, .gradient_norm = norm, .used = std::move(used)},
                           {.clip_norm = 0.5, .non_finite = optim::NonFinitePolicy::skip});
  }
  std::vector<float> values() {
    const auto values = store.values<float>().span().first(112);  // without the gap at the end
    return {values.begin(), values.end()};
  }
  State state() {
    State state;
    store.add_to(state, "model.");
    optimizer->add_to(state);
    return state;
  }
};

// A rank's part; the other ranks' parts are not needed.
class LoneShard final : public Shard {
 public:
  explicit LoneShard(std::vector<Range> ranges) : Shard(std::move(ranges), false) {}
  std::unique_ptr<Publication> publish() override { return std::make_unique<Nothing>(); }
  void sum_over_ranks(std::span<double>) override {}
  void sum_over_ranks(std::span<float>) override {}

 private:
  struct Nothing final : Publication {
    void updated(std::size_t) override {}
    void finish() override {}
  };
};

}  // namespace

TEST_CASE("every optimizer goes on from its state, at any step, with the same bits") {
  for (const std::string& name : all_names()) {
    CAPTURE(name);
    Weights<Float32> whole(name);
    for (int number = 0; number < 8; ++number) {
      Weights<Float32> resumed(name);
      tests::copy_state(whole.state(), resumed.state());
      whole.step(number);
      resumed.step(number);
      REQUIRE(whole.values() == resumed.values());
    }
  }
}

TEST_CASE("a step that is not finite changes neither values nor state of any optimizer") {
  for (const std::string& name : all_names()) {
    CAPTURE(name);
    Weights<Float32> one(name);
    Weights<Float32> other(name);
    for (int number = 0; number < 4; ++number) {
      if (number == 2) {
        const auto before = other.values();
        CHECK_FALSE(other.step(7, {true, false, true}, std::numeric_limits<double>::quiet_NaN()));
        CHECK(other.values() == before);
      }
      one.step(number);
      other.step(number);
    }
    CHECK(one.values() == other.values());
    CHECK(other.optimizer->skipped_steps() == 1);
  }
}

TEST_CASE("every optimizer leaves alone what is frozen, and in a step what was not used") {
  for (const std::string& name : all_names()) {
    CAPTURE(name);
    Weights<Float32> weights(name);
    Weights<Float32> alone(name);
    const auto begin = weights.values();
    weights.step(0);
    alone.step(0);
    const auto after = weights.values();
    weights.step(1, {false, false, true});
    for (std::size_t at = 0; at < after.size(); ++at) {
      const float got = weights.values()[at];
      if (at < 64) CHECK(got != after[at]);
      if (at >= 64) CHECK(got == after[at]);
      if (at >= 96) CHECK(got == begin[at]);
    }
    // The unused parameter's state has not changed either.
    weights.step(2);
    alone.step(2);
    for (std::size_t at = 64; at < 96; ++at) CHECK(weights.values()[at] == alone.values()[at]);
  }
}

TEST_CASE("every optimizer that updates any range does it with the same bits in a shard") {
  const std::vector<Range> own{{0, 16}, {16, 16}, {16, 32}, {48, 80}};
  for (const std::string& name : all_names()) {
    if (name == "lamb" || name == "lars" || name == "muon" || name == "adafactor") continue;  // they sum over all ranks
    if (name == "adamw_8bit in blocks") continue;                                             // so does this
    CAPTURE(name);
    Weights<Float32> whole(name);
    Weights<Float32> part(name);
    part.store.set_shard(std::make_shared<LoneShard>(own));
    const auto begin = whole.values();
    for (int number = 0; number < 7; ++number) {
      whole.step(number);
      part.step(number);
    }
    for (std::size_t at = 0; at < begin.size(); ++at) {
      const bool mine = std::ranges::any_of(own, [&](const Range& range) {
        return range.begin <= static_cast<std::int64_t>(at) && static_cast<std::int64_t>(at) < range.end;
      });
      REQUIRE(part.values()[at] == (mine ? whole.values()[at] : begin[at]));
    }
  }
}

TEST_CASE("in mixed precision every optimizer takes the same steps and renews the rounded copy") {
  for (const std::string& name : all_names()) {
    CAPTURE(name);
    Weights<Float32> single(name);
    Weights<MixedBfloat16> mixed(name);
    for (int number = 0; number < 3; ++number) {
      single.step(number);
      mixed.step(number);
    }
    CHECK(single.values() == mixed.values());
    for (const int parameter : {mixed.first, mixed.last}) {
      const auto values = mixed.store.values<float>(parameter).span();
      const auto rounded = mixed.store.compute_values<bfloat16>(parameter).span();
      for (std::size_t at = 0; at < values.size(); ++at) {
        REQUIRE(static_cast<float>(rounded[at]) == static_cast<float>(bfloat16(values[at])));
      }
    }
  }
}
