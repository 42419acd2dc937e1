#include "trireme/autograd/recurrent.hpp"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "trireme/autograd/record.hpp"
#include "trireme/ops/matmul/matmul.hpp"
#include "trireme/ops/reduce/reduce.hpp"

namespace trireme {
namespace {

using ops::RecurrentCell;

template <typename T, typename D>
struct Direction {
  ops::RecurrentForward<T, D> pass;
  RecurrentVariables<T, D> weights;
};

// The states [directions, batch, hidden] of one direction, sharing the elements.
template <typename T, typename D>
Tensor<T, D> state_of(const Tensor<T, D>& states, std::size_t direction) {
  if (!states.defined()) return {};
  return states.narrow(static_cast<std::int64_t>(direction), 1).reshape({states.dim(1), states.dim(2)});
}

// The three results are one step of backward, which runs when the gradients of all are complete.
template <typename T, typename D>
class RecurrentNode final : public Tape::Node {
 public:
  RecurrentNode(std::vector<Direction<T, D>> directions, const Variable<T, D>& x, const Variable<T, D>& h0,
                const Variable<T, D>& c0, const RecurrentResult<T, D>& result)
      : directions_(std::move(directions)),
        dx_(x.gradient()),
        dh0_(h0.gradient()),
        dc0_(c0.gradient()),
        dout_(result.out.gradient()),
        dh_n_(result.h_n.gradient()),
        dc_n_(result.c_n.gradient()),
        state_shape_(result.h_n.shape()) {}

  void backward() override {
    Tensor<T, D> dout = dout_.slot()->take();
    Tensor<T, D> dh = dh_n_.slot()->take();
    Tensor<T, D> dc = dc_n_.needed() ? dc_n_.slot()->take() : Tensor<T, D>();
    if (!dout.defined() && !dh.defined() && !dc.defined()) return;
    if (!dout.defined()) dout = Tensor<T, D>::zeros(directions_.front().pass.out.shape());
    dh = dh.defined() ? dh.clone() : Tensor<T, D>::zeros(state_shape_);
    if (dc_n_.needed()) dc = dc.defined() ? dc.clone() : Tensor<T, D>::zeros(state_shape_);
    for (std::size_t direction = directions_.size(); direction-- > 0;) run(direction, dout, dh, dc);
    dx_.contribute([&](Tensor<T, D>& dx, bool accumulate) {
      for (const Direction<T, D>& direction : directions_) {
        ops::matmul(direction.pass.gates, direction.pass.weights.weight_ih, dx, {.accumulate = accumulate});
        accumulate = true;
      }
    });
    dh0_.give(std::move(dh));
    if (dc_n_.needed()) dc0_.give(std::move(dc));
  }

 private:
  void run(std::size_t index, const Tensor<T, D>& dout, const Tensor<T, D>& dh, const Tensor<T, D>& dc) {
    const auto& [pass, weights] = directions_[index];
    const ops::RecurrentBackward<T, D> backward{
        .dout = dout,
        .dh = state_of(dh, index),
        .dc = state_of(dc, index),
        .h_old = Tensor<T, D>(pass.inner.shape()),
        .drecurrent = pass.cell == RecurrentCell::lstm ? pass.gates : Tensor<T, D>(pass.gates.shape())};
    ops::recurrent_backward(pass, backward);
    const auto contribute = [](const Gradient<T, D>& weight, const Tensor<T, D>& dproduct, const Tensor<T, D>& left) {
      weight.contribute([&](Tensor<T, D>& dweight, bool accumulate) {
        ops::matmul(dproduct, left, dweight, {.transpose_a = true, .accumulate = accumulate});
      });
    };
    const auto contribute_bias = [](const Gradient<T, D>& bias, const Tensor<T, D>& dproduct) {
      bias.contribute([&](Tensor<T, D>& dbias, bool accumulate) { ops::sum_rows(dproduct, dbias, accumulate); });
    };
    contribute_bias(weights.bias_hh.gradient(), backward.drecurrent);
    contribute_bias(weights.bias_ih.gradient(), pass.gates);
    contribute(weights.weight_hh.gradient(), backward.drecurrent, backward.h_old);
    contribute(weights.weight_ih.gradient(), pass.gates, pass.x);
  }

  std::vector<Direction<T, D>> directions_;
  Gradient<T, D> dx_, dh0_, dc0_;
  Gradient<T, D> dout_, dh_n_, dc_n_;
  Shape state_shape_;
};

template <typename T, typename D>
Tape* tape_for_layer(const Variable<T, D>& x, const Variable<T, D>& h0, const Variable<T, D>& c0,
                     std::span<const RecurrentVariables<T, D>> directions) {
  const RecurrentVariables<T, D>& first = directions.front();
  const RecurrentVariables<T, D> second = directions.size() > 1 ? directions[1] : RecurrentVariables<T, D>{};
  return detail::tape_for("recurrent_layer", {x.slot(), h0.slot(), c0.slot(), first.weight_ih.slot(), first.weight_hh.slot(),
                                              first.bias_ih.slot(), first.bias_hh.slot(), second.weight_ih.slot(),
                                              second.weight_hh.slot(), second.bias_ih.slot(), second.bias_hh.slot()});
}

}  // namespace

template <typename T, typename D>
RecurrentResult<T, D> recurrent_layer(RecurrentCell cell, const Variable<T, D>& x, const Variable<T, D>& h0,
                                      const Variable<T, D>& c0, std::span<const RecurrentVariables<T, D>> directions,
                                      const Tensor<std::int32_t, D>& lengths) {
  const auto num_directions = static_cast<std::int64_t>(directions.size());
  require(num_directions == 1 || num_directions == 2, "a recurrent layer has one or two directions, got {}", num_directions);
  for (const auto& [weight_ih, weight_hh, bias_ih, bias_hh] : directions) {
    require_operands("recurrent_layer", x, h0, optional(c0), weight_ih, weight_hh, optional(bias_ih), optional(bias_hh));
  }
  require(x.shape().size() == 3, "recurrent_layer: x has shape {}, but needs [batch, time, in]", x.shape());
  const bool lstm = cell == RecurrentCell::lstm;
  const std::int64_t batch = x.shape()[0];
  const std::int64_t time = x.shape()[1];
  const std::int64_t hidden = directions.front().weight_hh.shape().back();
  const Shape state{num_directions, batch, hidden};
  require(h0.shape() == state, "recurrent_layer: h0 has shape {}, but needs {}", h0.shape(), state);
  require(lstm ? c0.shape() == state : !c0.value().defined(), "recurrent_layer: c0 has shape {}, but {}", c0.shape(),
          lstm ? fmt::format("needs {}", state) : "a GRU has none");

  const Tensor<T, D> out({batch, time, num_directions * hidden});
  const Tensor<T, D> h_n(state);
  const Tensor<T, D> c_n = lstm ? Tensor<T, D>(state) : Tensor<T, D>();
  std::vector<Direction<T, D>> passes;
  for (std::size_t index = 0; index < directions.size(); ++index) {
    const RecurrentVariables<T, D>& weights = directions[index];
    passes.push_back({.pass = {.cell = cell,
                               .reverse = index == 1,
                               .x = x.value(),
                               .lengths = lengths,
                               .h0 = state_of(h0.value(), index),
                               .c0 = state_of(c0.value(), index),
                               .weights = {.weight_ih = weights.weight_ih.value(),
                                           .weight_hh = weights.weight_hh.value(),
                                           .bias_ih = weights.bias_ih.value(),
                                           .bias_hh = weights.bias_hh.value()},
                               .out = out,
                               .out_offset = static_cast<std::int64_t>(index) * hidden,
                               .h_n = state_of(h_n, index),
                               .c_n = state_of(c_n, index),
                               .gates = Tensor<T, D>({batch, time, ops::num_gates(cell) * hidden}),
                               .inner = Tensor<T, D>({batch, time, hidden})},
                      .weights = weights});
    ops::recurrent(passes.back().pass);
  }

  Tape* tape = tape_for_layer(x, h0, c0, directions);
  if (tape == nullptr) return {.out = out, .h_n = h_n, .c_n = c_n};
  RecurrentResult<T, D> result{.out = detail::recorded(*tape, out),
                               .h_n = detail::recorded(*tape, h_n),
                               .c_n = lstm ? detail::recorded(*tape, c_n) : Variable<T, D>()};
  tape->add(std::make_unique<RecurrentNode<T, D>>(std::move(passes), x, h0, c0, result));
  return result;
}

#define TRIREME_INSTANTIATE(T)                                                                    \
  template RecurrentResult<T, TRIREME_DEVICE> recurrent_layer(                                    \
      RecurrentCell, const Variable<T, TRIREME_DEVICE>&, const Variable<T, TRIREME_DEVICE>&,      \
      const Variable<T, TRIREME_DEVICE>&, std::span<const RecurrentVariables<T, TRIREME_DEVICE>>, \
      const Tensor<std::int32_t, TRIREME_DEVICE>&)
TRIREME_INSTANTIATE(float);
TRIREME_INSTANTIATE(double);
#undef TRIREME_INSTANTIATE

}  // namespace trireme
