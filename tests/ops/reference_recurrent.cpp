#include "ops/reference_recurrent.hpp"

#include <algorithm>

#include "trireme/autograd/operations/reduce.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/nn/recurrent/recurrent.hpp"

namespace trireme::ops {
namespace {

// [a, b, width] -> [b, a, width]: the fixtures' other layout.
Tensor<float> swapped(const Tensor<float>& x) {
  Tensor<float> result({x.dim(1), x.dim(0), x.dim(2)});
  for (std::int64_t a = 0; a < x.dim(0); ++a) {
    for (std::int64_t b = 0; b < x.dim(1); ++b) {
      std::copy_n(x.data() + (a * x.dim(1) + b) * x.dim(2), x.dim(2), result.data() + (b * x.dim(0) + a) * x.dim(2));
    }
  }
  return result;
}

template <RecurrentCell kind>
class RecurrentRun {
 public:
  explicit RecurrentRun(OpFixture& fixture)
      : fixture_(fixture),
        batch_first_(fixture.hyper().at("batch_first")),
        layers_(fixture.hyper().at("layers")),
        directions_(fixture.hyper().at("bidirectional") ? 2 : 1),
        module_({.in = fixture.shape("x").back(),
                 .hidden = fixture.hyper().at("hidden"),
                 .layers = layers_,
                 .bidirectional = directions_ == 2,
                 .bias = fixture.has("bias_ih_l0")}) {}

  void run() {
    fixture_.know_options({"hidden", "layers", "bidirectional", "batch_first"});
    FlatStore& store = module_.store();
    for (int index = 0; index < store.num_parameters(); ++index) {
      const Tensor<float> given = fixture_.input(store.parameter(index).name);
      std::copy_n(given.data(), given.numel(), store.values<float>(index).data());
    }
    const auto layout = [&](const Tensor<float>& x) { return batch_first_ ? x : swapped(x); };
    Tape tape;
    const auto x = watch(layout(fixture_.input("x")), [&](const Tensor<float>& dx) { fixture_.result("grad_x", layout(dx)); });
    const typename nn::Recurrent<Float32, kind>::State state{.hidden = states("h0"), .cell = states("c0")};
    const auto result = module_.forward(x, state);
    fixture_.result("out", layout(result.out.value()));
    auto total = weighted(result.out, layout(fixture_.input("gout_out")));
    total = add(total, give_states("hn", result.state.hidden));
    if (!result.state.cell.empty()) total = add(total, give_states("cn", result.state.cell));
    total.backward();
    for (int index = 0; index < store.num_parameters(); ++index) {
      fixture_.result("grad_" + store.parameter(index).name, store.gradient<float>(index));
    }
    for (const auto& [name, gradients] : state_gradients_) fixture_.result("grad_" + name, gradients);
  }

 private:
  static Variable<float> weighted(const Variable<float>& y, const Tensor<float>& upstream) {
    return sum(multiply(y, Variable<float>(upstream)));
  }

  // [layers * directions, batch, hidden] as one variable a layer, and their gradients as one tensor again.
  std::vector<Variable<float>> states(const std::string& name) {
    if (!fixture_.has(name)) return {};
    const Tensor<float> all = fixture_.input(name);
    Tensor<float>& gradient = state_gradients_.emplace(name, all.shape()).first->second;
    std::vector<Variable<float>> of_layers;
    for (int layer = 0; layer < layers_; ++layer) {
      of_layers.push_back(watch(all.narrow(layer * directions_, directions_), [this, gradient, layer](const Tensor<float>& d) {
        std::copy_n(d.data(), d.numel(), gradient.narrow(layer * directions_, directions_).data());
      }));
    }
    return of_layers;
  }

  Variable<float> give_states(const std::string& name, const std::vector<Variable<float>>& of_layers) {
    const Tensor<float> upstream = fixture_.input("gout_" + name);
    const Tensor<float> values(upstream.shape());
    Variable<float> total;
    for (int layer = 0; layer < layers_; ++layer) {
      const auto& state = of_layers[static_cast<std::size_t>(layer)];
      std::copy_n(state.value().data(), state.value().numel(), values.narrow(layer * directions_, directions_).data());
      const auto part = weighted(state, upstream.narrow(layer * directions_, directions_));
      total = layer == 0 ? part : add(total, part);
    }
    fixture_.result(name, values);
    return total;
  }

  OpFixture& fixture_;
  bool batch_first_;
  int layers_;
  std::int64_t directions_;
  nn::Recurrent<Float32, kind> module_;
  std::map<std::string, Tensor<float>> state_gradients_;
};

}  // namespace

void run_lstm(OpFixture& fixture) { RecurrentRun<RecurrentCell::lstm>(fixture).run(); }

void run_gru(OpFixture& fixture) { RecurrentRun<RecurrentCell::gru>(fixture).run(); }

}  // namespace trireme::ops
