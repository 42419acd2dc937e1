#include "trireme/autograd/operations/recurrent.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "precision/instantiate.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/ops/matmul/matmul.hpp"
#include "trireme/ops/reduce/reduce.hpp"

namespace trireme {
namespace {

using ops::RecurrentCell;

// One tensor for each direction.
template <typename T, typename D>
using Each = std::vector<Tensor<T, D>>;
template <typename T, typename D>
using GradientOfEach = std::vector<Gradient<T, D>>;

// One direction of the states [directions, batch, hidden], sharing the elements.
template <typename T, typename D>
Tensor<T, D> state_of(const Tensor<T, D>& states, std::size_t direction) {
  if (!states.defined()) return {};
  return states.narrow(static_cast<std::int64_t>(direction), 1).reshape({states.dim(1), states.dim(2)});
}

// Base of the cells. All results are recorded as one operation: backward runs when the gradients of all of them are complete.
template <typename T, typename D>
struct RecurrentLayer {
  static constexpr std::string_view name = "recurrent_layer";

  // What forward keeps of each direction for backward, which overwrites the gates.
  struct Steps {
    Tensor<T, D> gates;
    Tensor<T, D> inner;
  };
  std::vector<Steps> steps = {};

 protected:
  struct Layer {
    RecurrentCell cell;
    const Tensor<T, D>& x;
    const Tensor<std::int32_t, D>& lengths;
    const Tensor<T, D>& h0;
    const Tensor<T, D>& c0;
    const Tensor<T, D>& out;
    const Tensor<T, D>& h_n;
    const Tensor<T, D>& c_n;
  };
  struct Weights {
    const Each<T, D>& weight_ih;
    const Each<T, D>& weight_hh;
    const Each<T, D>& bias_ih;
    const Each<T, D>& bias_hh;
  };
  struct Gradients {
    const Gradient<T, D>& x;
    const Gradient<T, D>& h0;
    const Gradient<T, D>& c0;
    const GradientOfEach<T, D>& weight_ih;
    const GradientOfEach<T, D>& weight_hh;
    const GradientOfEach<T, D>& bias_ih;
    const GradientOfEach<T, D>& bias_hh;
  };

  void run(const Layer& layer, const Weights& weights) {
    const std::int64_t batch = layer.x.dim(0);
    const std::int64_t time = layer.x.dim(1);
    const std::int64_t hidden = layer.h0.dim(2);
    for (std::size_t index = 0; index < weights.weight_ih.size(); ++index) {
      steps.push_back({.gates = Tensor<T, D>({batch, time, ops::num_gates(layer.cell) * hidden}),
                       .inner = Tensor<T, D>({batch, time, hidden})});
      ops::recurrent(of_direction(index, layer,
                                  {.weight_ih = weights.weight_ih[index],
                                   .weight_hh = weights.weight_hh[index],
                                   .bias_ih = weights.bias_ih[index],
                                   .bias_hh = weights.bias_hh[index]}));
    }
  }

  void run_backward(const Layer& layer, const Each<T, D>& weight_ih, const Each<T, D>& weight_hh, Tensor<T, D>& dout,
                    Tensor<T, D>& dh, Tensor<T, D>& dc, const Gradients& gradients) const {
    const bool lstm = layer.cell == RecurrentCell::lstm;
    const Shape& state = layer.h_n.shape();
    if (!dout.defined()) dout = Tensor<T, D>::zeros(layer.out.shape());
    dh = dh.defined() ? dh.clone() : Tensor<T, D>::zeros(state);
    if (lstm) dc = dc.defined() ? dc.clone() : Tensor<T, D>::zeros(state);
    for (std::size_t index = steps.size(); index-- > 0;) {
      const auto pass = of_direction(
          index, layer, {.weight_ih = weight_ih[index], .weight_hh = weight_hh[index], .bias_ih = {}, .bias_hh = {}});
      run_direction(index, pass,
                    {.dout = dout,
                     .dh = state_of(dh, index),
                     .dc = state_of(dc, index),
                     .h_old = Tensor<T, D>(pass.inner.shape()),
                     .drecurrent = lstm ? pass.gates : Tensor<T, D>(pass.gates.shape())},
                    gradients);
    }
    gradients.x.contribute([&](Tensor<T, D>& dx, bool accumulate) {
      for (std::size_t index = 0; index < steps.size(); ++index) {
        ops::matmul(steps[index].gates, weight_ih[index], dx, {.accumulate = accumulate});
        accumulate = true;
      }
    });
    gradients.h0.give(std::move(dh));
    if (lstm) gradients.c0.give(std::move(dc));
  }

 private:
  ops::RecurrentForward<T, D> of_direction(std::size_t index, const Layer& layer,
                                           const ops::RecurrentWeights<T, D>& weights) const {
    return {.cell = layer.cell,
            .reverse = index == 1,
            .x = layer.x,
            .lengths = layer.lengths,
            .h0 = state_of(layer.h0, index),
            .c0 = state_of(layer.c0, index),
            .weights = weights,
            .out = layer.out,
            .out_offset = static_cast<std::int64_t>(index) * layer.h0.dim(2),
            .h_n = state_of(layer.h_n, index),
            .c_n = state_of(layer.c_n, index),
            .gates = steps[index].gates,
            .inner = steps[index].inner};
  }

  static void run_direction(std::size_t index, const ops::RecurrentForward<T, D>& pass,
                            const ops::RecurrentBackward<T, D>& backward, const Gradients& gradients) {
    ops::recurrent_backward(pass, backward);
    const auto contribute = [](const Gradient<T, D>& weight, const Tensor<T, D>& dproduct, const Tensor<T, D>& left) {
      weight.contribute([&](Tensor<T, D>& dweight, bool accumulate) {
        ops::matmul(dproduct, left, dweight, {.transpose_a = true, .accumulate = accumulate});
      });
    };
    const auto contribute_bias = [](const Gradient<T, D>& bias, const Tensor<T, D>& dproduct) {
      bias.contribute([&](Tensor<T, D>& dbias, bool accumulate) { ops::sum_rows(dproduct, dbias, accumulate); });
    };
    contribute_bias(gradients.bias_hh[index], backward.drecurrent);
    contribute_bias(gradients.bias_ih[index], pass.gates);
    contribute(gradients.weight_hh[index], backward.drecurrent, backward.h_old);
    contribute(gradients.weight_ih[index], pass.gates, pass.x);
  }
};

template <typename T, typename D>
struct Lstm : RecurrentLayer<T, D> {
  void forward(const Tensor<T, D>& x, const Tensor<T, D>& h0, const Tensor<T, D>& c0, const Each<T, D>& weight_ih,
               const Each<T, D>& weight_hh, const Each<T, D>& bias_ih, const Each<T, D>& bias_hh, const auto& lengths,
               const Tensor<T, D>& out, const Tensor<T, D>& h_n, const Tensor<T, D>& c_n) {
    this->run({RecurrentCell::lstm, x, lengths, h0, c0, out, h_n, c_n}, {weight_ih, weight_hh, bias_ih, bias_hh});
  }
  void backward(Tensor<T, D>& dout, Tensor<T, D>& dh_n, Tensor<T, D>& dc_n, const Tensor<T, D>& x, const Tensor<T, D>& h0,
                const Tensor<T, D>& c0, const Each<T, D>& weight_ih, const Each<T, D>& weight_hh, const auto& lengths,
                const Tensor<T, D>& out, const Tensor<T, D>& h_n, const auto&... gradients) const {
    this->run_backward({RecurrentCell::lstm, x, lengths, h0, c0, out, h_n, {}}, weight_ih, weight_hh, dout, dh_n, dc_n,
                       {gradients...});
  }
  void describe(Attributes& to) const { to["cell"] = std::string("lstm"); }
};

template <typename T, typename D>
struct Gru : RecurrentLayer<T, D> {
  void forward(const Tensor<T, D>& x, const Tensor<T, D>& h0, const Tensor<T, D>& c0, const Each<T, D>& weight_ih,
               const Each<T, D>& weight_hh, const Each<T, D>& bias_ih, const Each<T, D>& bias_hh, const auto& lengths,
               const Tensor<T, D>& out, const Tensor<T, D>& h_n) {
    this->run({RecurrentCell::gru, x, lengths, h0, c0, out, h_n, {}}, {weight_ih, weight_hh, bias_ih, bias_hh});
  }
  void backward(Tensor<T, D>& dout, Tensor<T, D>& dh_n, const Tensor<T, D>& x, const Tensor<T, D>& h0, const Tensor<T, D>& c0,
                const Each<T, D>& weight_ih, const Each<T, D>& weight_hh, const auto& lengths, const Tensor<T, D>& out,
                const Tensor<T, D>& h_n, const auto&... gradients) const {
    Tensor<T, D> no_dc;
    this->run_backward({RecurrentCell::gru, x, lengths, h0, c0, out, h_n, {}}, weight_ih, weight_hh, dout, dh_n, no_dc,
                       {gradients...});
  }
  void describe(Attributes& to) const { to["cell"] = std::string("gru"); }
};

}  // namespace

template <typename T, typename D>
RecurrentResult<T, D> recurrent_layer(RecurrentCell cell, const Variable<T, D>& x, const Variable<T, D>& h0,
                                      const Variable<T, D>& c0, std::span<const RecurrentVariables<T, D>> directions,
                                      const Tensor<std::int32_t, D>& lengths) {
  const auto num_directions = static_cast<std::int64_t>(directions.size());
  require(num_directions == 1 || num_directions == 2, "a recurrent layer has one or two directions, got {}", num_directions);
  const bool lstm = cell == RecurrentCell::lstm;
  const auto checked_state = [&] {
    require(x.shape().size() == 3, "recurrent_layer: x has shape {}, but needs [batch, time, in]", x.shape());
    const Shape state{num_directions, x.shape()[0], directions.front().weight_hh.shape().back()};
    require(h0.shape() == state, "recurrent_layer: h0 has shape {}, but needs {}", h0.shape(), state);
    require(lstm ? c0.shape() == state : !c0.value().defined(), "recurrent_layer: c0 has shape {}, but {}", c0.shape(),
            lstm ? fmt::format("needs {}", state) : "a GRU has none");
    return state;
  };
  const auto out_of = [&](const Shape& state) {
    return Result<T, D>{{x.shape()[0], x.shape()[1], num_directions * state.back()}};
  };

  std::vector<Variable<T, D>> weights_ih, weights_hh, biases_ih, biases_hh;
  for (const auto& [weight_ih, weight_hh, bias_ih, bias_hh] : directions) {
    weights_ih.push_back(weight_ih);
    weights_hh.push_back(weight_hh);
    biases_ih.push_back(bias_ih);
    biases_hh.push_back(bias_hh);
  }
  const auto run = [&](auto operation, const auto& results) {
    return record(std::move(operation), results, kept(x), kept(h0), kept(optional(c0)), kept(weights_ih), kept(weights_hh),
                  optional(biases_ih), optional(biases_hh), kept(optional(lengths)));
  };
  if (lstm) {
    auto [out, h_n, c_n] = run(Lstm<T, D>(), [&] {
      const Shape state = checked_state();
      return std::tuple(kept(out_of(state)), kept(Result<T, D>{state}), Result<T, D>{state});
    });
    return {.out = std::move(out), .h_n = std::move(h_n), .c_n = std::move(c_n)};
  }
  auto [out, h_n] = run(Gru<T, D>(), [&] {
    const Shape state = checked_state();
    return std::tuple(kept(out_of(state)), kept(Result<T, D>{state}));
  });
  return {.out = std::move(out), .h_n = std::move(h_n), .c_n = {}};
}

TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, recurrent_layer, TRIREME_DEVICE)

}  // namespace trireme
