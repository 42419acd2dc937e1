#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "catch.hpp"
#include "trireme/core/error.hpp"
#include "trireme/optim/adamw.hpp"
#include "trireme/optim/lamb.hpp"
#include "trireme/optim/moving_average.hpp"
#include "trireme/optim/optimizer.hpp"
#include "trireme/optim/sgd.hpp"

// Where optimizers keep their state: planes of the store that end with them.
using namespace trireme;

namespace {

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

// Elements: 64 of `last`, 32 of `first`, 16 of `frozen`.
struct Weights {
  Model model{DType::float32};
  FlatStore& store = model.store();
  int first = store.add("first", {4, 8}, Initializer::constant(1));
  int frozen = store.add("frozen", {16}, Initializer::constant(2));
  int last = store.add("last", {64}, Initializer::constant(3));
  Weights() {
    store.freeze(frozen);
    store.initialize<float>(1);
  }

  void step(optim::Optimizer<Float32>& optimizer, int number = 0) {
    const auto gradients = store.gradients<float>().span();
    for (std::size_t at = 0; at < gradients.size(); ++at) {
      gradients[at] = std::sin(static_cast<float>(at) + static_cast<float>(number));
    }
    optimizer.step({.target_weight = 1, .gradient_norm = 1, .used = {true, false, true}});
  }
  std::vector<float> values() {
    const auto values = store.values<float>().span();
    return {values.begin(), values.end()};
  }
};

// values -= the sum of all gradients so far, plus 1.
class Sums final : public optim::Optimizer<Float32> {
 public:
  explicit Sums(Model& model, Home home = Home::device)
      : Optimizer(model, {.learning_rate = 1}), sums_(add_plane("sums", 1, home)) {}
  optim::Settings settings() const override { return {}; }
  using Optimizer::add_plane;

 private:
  void update(const Piece& piece) override {
    float* sums = piece.plane(sums_);
    CHECK(piece.plane(no_plane) == nullptr);
    for (std::size_t i = 0; i < piece.count; ++i) piece.values[i] -= sums[i] += piece.gradients[i];
  }
  int sums_;
};

std::size_t in_use() { return device::host_memory_statistics().in_use_bytes; }

std::vector<std::string> names_of(const State& state) {
  std::vector<std::string> names;
  for (const StateTensor& tensor : state.tensors()) names.push_back(tensor.name);
  for (const auto& value : state.values()) names.push_back(value.name);
  return names;
}

}  // namespace

TEST_CASE("checkpoints know an optimizer's planes by prefix, plane and parameter, frozen ones left out") {
  Weights model;
  optim::AdamW<Float32> adamw(model.model, {.amsgrad = true});
  State state;
  adamw.add_to(state);
  CHECK(names_of(state) == std::vector<std::string>{"optimizer.exp_avg.first", "optimizer.exp_avg_sq.first",
                                                    "optimizer.max_exp_avg_sq.first", "optimizer.exp_avg.last",
                                                    "optimizer.exp_avg_sq.last", "optimizer.max_exp_avg_sq.last",
                                                    "optimizer.skipped_steps", "optimizer.skipped_in_a_row",
                                                    "optimizer.step.first", "optimizer.step.last"});
  optim::ExponentialMovingAverage<Float32> average(model.model);
  State of_average;
  average.add_to(of_average);
  CHECK(names_of(of_average) ==
        std::vector<std::string>{"moving_average.first", "moving_average.last", "moving_average.updates"});
}

TEST_CASE("two optimizers of one store have planes of the same names and states of their own") {
  Weights together;
  optim::AdamW<Float32> one(together.model, {.learning_rate = 0.1});
  optim::AdamW<Float32> two(together.model, {.learning_rate = 0.2});
  optim::ExponentialMovingAverage<Float32> average(together.model);
  Weights alone;
  optim::AdamW<Float32> of_alone(alone.model, {.learning_rate = 0.1});
  for (int number = 0; number < 3; ++number) {
    together.step(one, number);
    alone.step(of_alone, number);
    CHECK(together.values() == alone.values());
  }
  // The second one's moments are those of a first step, whatever the first did.
  Weights fresh;
  std::ranges::copy(together.values(), fresh.store.values<float>().data());
  optim::AdamW<Float32> of_fresh(fresh.model, {.learning_rate = 0.2});
  together.step(two);
  fresh.step(of_fresh);
  CHECK(together.values() == fresh.values());
  State state;
  one.add_to(state, "one.");
  two.add_to(state, "two.");
  state.prepare();
}

TEST_CASE("an optimizer gives its memory back, and the next one begins anew") {
  Weights model;
  model.store.gradients<float>();
  const auto begin = model.values();
  std::optional<std::vector<float>> wanted;
  const std::size_t before = in_use();
  for (int time = 0; time < 3; ++time) {
    std::ranges::copy(begin, model.store.values<float>().data());
    optim::AdamW<Float32> optimizer(model.model);
    CHECK(in_use() == before);
    model.step(optimizer);
    CHECK(in_use() >= before + 2 * 96 * sizeof(float));
    model.step(optimizer, 1);
    if (!wanted) wanted = model.values();
    CHECK(model.values() == *wanted);
  }
  CHECK(in_use() == before);
  {
    optim::ExponentialMovingAverage<Float32> average(model.model);
    average.update();
    CHECK(in_use() >= before + 96 * sizeof(float));
  }
  CHECK(in_use() == before);
}

TEST_CASE("a state with the planes of an optimizer that has ended is refused") {
  Weights model;
  State state;
  {
    optim::Sgd<Float32> optimizer(model.model, {.momentum = 0.9});
    optimizer.add_to(state);
    state.prepare();
  }
  CHECK_THROWS_WITH(state.prepare(), ContainsSubstring("refers to old memory of the plane momentum_buffer"));
}

TEST_CASE("an optimizer may end after its model") {
  std::optional<Weights> model(std::in_place);
  Sums optimizer(model->model);
  model->step(optimizer);
  model.reset();
}

TEST_CASE("in a shard each element keeps its state, whatever the number of ranges") {
  Weights whole;
  Sums of_whole(whole.model);
  std::vector<float> wanted;
  for (int number = 0; number < 3; ++number) whole.step(of_whole, number);
  wanted = whole.values();
  const auto begin = Weights().values();
  const std::vector<Range> own{{0, 16}, {16, 16}, {16, 32}, {40, 72}, {80, 96}};
  for (const Home home : {Home::device, Home::host}) {
    Weights part;
    Sums optimizer(part.model, home);  // before the shard is known
    part.store.set_shard(std::make_shared<LoneShard>(own));
    for (int number = 0; number < 3; ++number) part.step(optimizer, number);
    const auto got = part.values();
    for (std::size_t at = 0; at < got.size(); ++at) {
      const bool mine = std::ranges::any_of(own, [&](const Range& range) {
        return range.begin <= static_cast<std::int64_t>(at) && static_cast<std::int64_t>(at) < range.end;
      });
      REQUIRE(got[at] == (mine ? wanted[at] : begin[at]));
    }
    State state;
    optimizer.add_to(state);
    std::int64_t held = 0;
    for (const StateTensor& tensor : state.tensors()) held += tensor.elements_here();
    CHECK(held == 80);
  }
}

TEST_CASE("a shard that is made after an optimizer's first use is an error, whichever planes it has") {
  const auto refuse = [](auto& optimizer, const auto& use) {
    Weights& model = use.model;
    use(optimizer);
    model.store.set_shard(std::make_shared<LoneShard>(std::vector<Range>{{0, 16}}));
    CHECK_THROWS_WITH(model.step(optimizer), ContainsSubstring("DataParallel was made after the first step of the optimizer"));
    State state;
    CHECK_THROWS_WITH(optimizer.add_to(state), ContainsSubstring("make DataParallel before"));
    model.store.set_shard(nullptr);
    model.step(optimizer);
  };
  struct Step {
    Weights& model;
    void operator()(optim::Optimizer<Float32>& optimizer) const { model.step(optimizer); }
  };
  struct Listing {
    Weights& model;
    void operator()(optim::Optimizer<Float32>& optimizer) const {
      State state;
      optimizer.add_to(state);
    }
  };
  Weights model;
  optim::Lamb<Float32> lamb(model.model);
  optim::Sgd<Float32> without_planes(model.model);
  Sums sums(model.model);
  refuse(lamb, Step{model});
  refuse(without_planes, Step{model});
  refuse(sums, Listing{model});
}

TEST_CASE("an optimizer refuses planes of one name and those that come late") {
  Weights model;
  Sums optimizer(model.model);
  CHECK_THROWS_WITH(optimizer.add_plane("sums"), ContainsSubstring("plane sums was added twice"));
  CHECK_THROWS_WITH(optimizer.add_plane("step"), ContainsSubstring("can't be named step"));
  model.step(optimizer);
  CHECK_THROWS_WITH(optimizer.add_plane("late"), ContainsSubstring("add it in the constructor"));
}

TEST_CASE("an optimizer of a model without trainable parameters has empty planes") {
  Model model(DType::float32);
  FlatStore& store = model.store();
  store.freeze(store.add("frozen", {16}, Initializer::constant(2)));
  store.initialize<float>(1);
  optim::AdamW<Float32> optimizer(model);
  optim::ExponentialMovingAverage<Float32> average(model);
  optimizer.step({.target_weight = 1, .used = {false}});
  average.update();
  average.swap();
  CHECK(average.average().numel() == 0);
  CHECK(store.values<float>(0).data()[3] == 2);
}
