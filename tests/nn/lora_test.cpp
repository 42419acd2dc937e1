// Adapters of linear layers: their results and gradients, and that frozen weights cost no gradients and no memory.

#include "trireme/nn/weights/lora.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "catch.hpp"
#include "gradient_check.hpp"
#include "trireme/nn/layers/layers.hpp"
#include "trireme/optim/adamw.hpp"

using namespace trireme;

namespace {

ModelContext adapted(std::vector<std::string> targets, double dropout = 0) {
  ModelContext context;
  context.lora = LoraOptions{.rank = 2, .alpha = 3, .dropout = dropout, .targets = std::move(targets)};
  return context;
}

// As a user writes it.
template <typename P>
struct Layers : nn::Module<P> {
  using nn::Module<P>::Module;
  nn::Linear<P> first{*this, "first", {.in = 5, .out = 6}};
  nn::Linear<P> packed{*this, "packed", {.in = 6, .out = 9, .packed = {4, 2, 3}, .packed_names = {"query", "key", "value"}}};
  nn::Linear<P> last{*this, "last", {.in = 9, .out = 4, .bias = false}};

  auto forward(const auto& x) const { return last.forward(packed.forward(first.forward(x))); }
};

template <typename T>
void draw_all(FlatStore& store) {
  for (int index = 0; index < store.num_parameters(); ++index) {
    store.write_values(index, tests::random<T>(store.parameter(index).shape, static_cast<std::uint64_t>(index) + 1));
  }
  store.refresh_compute_copy();
}

Tensor<double> value_of(FlatStore& store, const char* name) { return store.read_values<double>(store.find(name)); }

// Counts operations by name.
struct Names : Observer {
  std::map<std::string, int> forward_passes, backward_passes;
  void before(Pass pass, const OperationView& of) override {
    ++(pass == Pass::forward ? forward_passes : backward_passes)[std::string(of.name)];
  }
};

}  // namespace

TEST_CASE("each part of a packed layer has an adapter of its own") {
  const Layers<Float64> layers(adapted({"query", "value"}));
  draw_all<double>(layers.store());
  const auto x = tests::random({3, 6}, 100);
  const auto y = layers.packed.forward(Variable<double>(x)).value();
  const auto weight = value_of(layers.store(), "packed.weight"), bias = value_of(layers.store(), "packed.bias");
  const auto a = value_of(layers.store(), "packed.lora_A.weight"), b = value_of(layers.store(), "packed.lora_B.weight");
  REQUIRE(a.shape() == Shape{4, 6});
  REQUIRE(b.shape() == Shape{7, 2});
  for (std::int64_t row = 0; row < 3; ++row) {
    for (std::int64_t out = 0; out < 9; ++out) {
      double wanted = bias.data()[out];
      for (std::int64_t in = 0; in < 6; ++in) wanted += x.at(row, in) * weight.at(out, in);
      const bool is_key = out == 4 || out == 5;
      const std::int64_t part = out > 5 ? 1 : 0, of_b = out > 5 ? out - 2 : out;
      for (std::int64_t k = 0; k < 2 && !is_key; ++k) {
        double reduced = 0;
        for (std::int64_t in = 0; in < 6; ++in) reduced += x.at(row, in) * a.at(part * 2 + k, in);
        wanted += 1.5 * reduced * b.at(of_b, k);
      }
      CHECK(std::abs(y.at(row, out) - wanted) < 1e-12);
    }
  }
  CHECK(layers.store().find("first.lora_A.weight") < 0);
}

TEST_CASE("gradients of adapters are those of differences") {
  for (const double dropout : {0.0, 0.3}) {
    const Layers<Float64> layers(adapted({"first", "query", "value", "last"}, dropout));
    draw_all<double>(layers.store());
    const auto x = tests::random({3, 5}, 100);
    tests::expect_passed(testing::check_parameter_gradients(layers.store(), [&] { return layers.forward(Variable<double>(x)); },
                                                            {.tape = {.seed = 5}}));
    tests::expect_passed(
        testing::check_gradients([&](const tests::Inputs& in) { return layers.forward(in[0]); }, {x}, {.tape = {.seed = 5}}));
  }
}

TEST_CASE("merged adapters compute the same, without products of their own") {
  const Layers<Float64> layers(adapted({"all-linear"}));
  draw_all<double>(layers.store());
  const Variable<double> x(tests::random({3, 5}, 100));
  const auto wanted = layers.forward(x).value();
  nn::merge_adapter(layers);
  Names names;
  const Observation observation(names);
  const auto had = layers.forward(x).value();
  for (std::int64_t i = 0; i < wanted.numel(); ++i) CHECK(std::abs(had.data()[i] - wanted.data()[i]) < 1e-12);
  CHECK(names.forward_passes == std::map<std::string, int>{{"linear", 3}});
}

TEST_CASE("nothing is computed or kept for frozen weights") {
  const Layers<Float32> layers(adapted({"value"}));
  draw_all<float>(layers.store());
  FlatStore& store = layers.store();
  std::map<std::string, std::vector<float>> before;
  for (int index = 0; index < store.num_parameters(); ++index) {
    before[store.parameter(index).name] = tests::elements(store.read_values<float>(index));
  }
  optim::AdamW optimizer(layers, {.learning_rate = 0.1, .weight_decay = 0.5});
  Names names;
  {
    const Observation observation(names);
    Tape tape;
    sum(layers.forward(Variable<float>(tests::random<float>({3, 5}, 100)))).backward();
  }
  // Backward only multiplies for the last layer's input and for A: no gradient goes into the first layers.
  CHECK(names.forward_passes.at("linear") == 4);
  CHECK(names.backward_passes.at("linear") == 2);
  CHECK(names.backward_passes.at("add_low_rank") == 1);
  for (int index = 0; index < store.num_parameters(); ++index) {
    CHECK(store.has_gradient(index) == nn::is_of_adapter(store.parameter(index).name));
  }
  CHECK(store.trainable_numel() == 32);  // A [2, 6] and B [3, 2], each at a bound of 64 bytes
  optimizer.step({.target_weight = 1, .used = std::vector<bool>(static_cast<std::size_t>(store.num_parameters()), true)});
  for (int index = 0; index < store.num_parameters(); ++index) {
    const std::string& name = store.parameter(index).name;
    CAPTURE(name);
    CHECK((tests::elements(store.read_values<float>(index)) == before.at(name)) == !nn::is_of_adapter(name));
  }
}

TEST_CASE("a layer with an adapter in eight bits gives nearly what it gives in bfloat16") {
  struct Wide : nn::Module<MixedBfloat16> {
    Wide(Float8Scaling fp8)
        : Module(adapted({"linear"})), linear(*this, "linear", nn::LinearOptions{.in = 32, .out = 16, .fp8 = fp8}) {}
    Linear linear;
  };
  const auto forward = [](Float8Scaling fp8) {
    Wide wide(fp8);
    draw_all<float>(wide.store());
    return tests::elements(wide.linear.forward(Variable<bfloat16>(tests::random<bfloat16>({16, 32}, 100))).value());
  };
  const auto exact = forward(Float8Scaling::none), rounded = forward(Float8Scaling::current);
  double error = 0, norm = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    const double difference = static_cast<float>(exact[i]) - static_cast<float>(rounded[i]);
    error += difference * difference;
    norm += static_cast<float>(exact[i]) * static_cast<float>(exact[i]);
  }
  CHECK(error > 0);
  CHECK(error < 0.05 * 0.05 * norm);
}
