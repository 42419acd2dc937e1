#pragma once

#include <fmt/format.h>

#include <deque>
#include <utility>
#include <vector>

#include "trireme/autograd/operations/array.hpp"
#include "trireme/autograd/operations/elementwise.hpp"
#include "trireme/autograd/operations/recurrent.hpp"
#include "trireme/core/export.hpp"
#include "trireme/nn/base/carried.hpp"
#include "trireme/nn/base/first_values.hpp"
#include "trireme/nn/base/module.hpp"

namespace trireme TRIREME_EXPORT {
namespace nn {

struct RecurrentOptions {
  std::int64_t in = 0;
  std::int64_t hidden = 0;
  int layers = 1;
  bool bidirectional = false;
  bool bias = true;
  double dropout = 0;    // of the output of every layer but the last
  bool carried = false;  // forward(x, batch) starts from the states of the previous step, see nn::Carried
};

// The states between two calls of a recurrent module: for each layer [directions, batch, hidden].
template <typename T, typename D = Cpu>
struct RecurrentState {
  std::vector<Variable<T, D>> hidden;  // empty: zeros
  std::vector<Variable<T, D>> cell;    // likewise; only for an LSTM

  // The same values without a gradient, to start the next part of truncated backpropagation through time.
  RecurrentState detached() const {
    RecurrentState state;
    for (const auto& h : hidden) state.hidden.push_back(h.detach());
    for (const auto& c : cell) state.cell.push_back(c.detach());
    return state;
  }
};

// Names, shapes, gates and initial values are those of torch.nn.LSTM and torch.nn.GRU with batch_first. In mixed precision,
// input, computation and output are float32.
template <typename P, ops::RecurrentCell kind, typename D = Cpu>
class Recurrent : public Module<P, D> {
 public:
  using T = typename P::Master;
  using State = RecurrentState<T, D>;

  explicit Recurrent(const RecurrentOptions& options) : options_(options) { add_layers(); }
  Recurrent(const Module<P, D>& parent, std::string_view name, const RecurrentOptions& options)
      : Module<P, D>(parent, name), options_(options) {
    this->require_all_rows("a recurrent layer");
    add_layers();
  }

  const RecurrentOptions& options() const { return options_; }

  struct Result {
    Variable<T, D> out;  // [batch, time, directions * hidden], of the last layer
    State state;         // after each row's last step
  };

  // x [batch, time, in]; lengths [batch]: the length of each row, if rows end early (ops::RecurrentForward); may be undefined.
  Result forward(const Variable<T, D>& x, const State& state = {}, const Tensor<std::int32_t, D>& lengths = {}) const {
    return this->named([&] {
      require(x.shape().size() == 3 && x.shape().back() == options_.in, "{}: x has shape {}, but needs [batch, time, {}]",
              this->name(), x.shape(), options_.in);
      const State first = or_zeros(state, x.shape()[0]);
      Result result{.out = x, .state = {}};
      for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
        if (layer > 0 && this->training()) {
          result.out = dropout(result.out, options_.dropout, fmt::format("{}.dropout_l{}", this->name(), layer - 1));
        }
        std::vector<RecurrentVariables<T, D>> directions;
        for (const Weights& weights : layers_[layer]) {
          directions.push_back({.weight_ih = weights.weight_ih.master(),
                                .weight_hh = weights.weight_hh.master(),
                                .bias_ih = weights.bias_ih.master(),
                                .bias_hh = weights.bias_hh.master()});
        }
        const auto of_layer = recurrent_layer<T, D>(kind, result.out, first.hidden[layer],
                                                    has_cell ? first.cell[layer] : Variable<T, D>(), directions, lengths);
        result.out = of_layer.out;
        result.state.hidden.push_back(of_layer.h_n);
        if (has_cell) result.state.cell.push_back(of_layer.c_n);
      }
      return result;
    });
  }

  // For a list of layers: returns only the output. States start as zeros, or, if RecurrentOptions::carried is set, as the
  // states of the same rows at the end of the previous step.
  template <typename Batch>
  Variable<T, D> forward(const Variable<T, D>& x, const Batch& batch) const {
    if (!options_.carried) return forward(x).out;
    if constexpr (BatchOfRows<Batch>) {
      return forward_carried(x, batch);
    } else {
      throw Error({.code = ErrorCode::invalid_argument,
                   .message = fmt::format("{}: states are carried from step to step by the rows of the batch", this->name()),
                   .hint = "give the batch members first_row, continues and rows(), as data::TokenBatch has, or leave out "
                           "carried"});
    }
  }

 private:
  static constexpr bool has_cell = kind == ops::RecurrentCell::lstm;

  struct Weights {
    Parameter<typename P::Compute, D, T> weight_ih;
    Parameter<typename P::Compute, D, T> weight_hh;
    Parameter<typename P::Compute, D, T> bias_ih;
    Parameter<typename P::Compute, D, T> bias_hh;
  };

  std::int64_t num_directions() const { return options_.bidirectional ? 2 : 1; }

  void add_layers() {
    require(options_.in > 0 && options_.hidden > 0 && options_.layers > 0,
            "{}: a recurrent module needs in, hidden and layers above 0, got {}, {} and {}", this->name(), options_.in,
            options_.hidden, options_.layers);
    const Initializer initializer = uniform_by_fan_in(options_.hidden);
    const std::int64_t gates = ops::num_gates(kind) * options_.hidden;
    for (int layer = 0; layer < options_.layers; ++layer) {
      const std::int64_t in = layer == 0 ? options_.in : num_directions() * options_.hidden;
      auto& directions = layers_.emplace_back();
      for (const char* direction : {"", "_reverse"}) {
        const auto add = [&](const char* name, const Shape& shape) {
          return this->add_parameter(fmt::format("{}_l{}{}", name, layer, direction), shape, initializer);
        };
        Weights& weights = directions.emplace_back();
        weights.weight_ih = add("weight_ih", {gates, in});
        weights.weight_hh = add("weight_hh", {gates, options_.hidden});
        if (options_.bias) weights.bias_ih = add("bias_ih", {gates});
        if (options_.bias) weights.bias_hh = add("bias_hh", {gates});
        if (!options_.bidirectional) break;
      }
    }
    if (options_.carried) add_carried();
  }

  void add_carried() {
    require(!options_.bidirectional,
            "{}: a bidirectional layer can't carry states to the next step, because it also reads backwards: set only one of "
            "bidirectional and carried",
            this->name());
    for (int layer = 0; layer < options_.layers; ++layer) {
      hidden_.emplace_back(*this, fmt::format("hidden_l{}", layer), Shape{options_.hidden});
      if (has_cell) cell_.emplace_back(*this, fmt::format("cell_l{}", layer), Shape{options_.hidden});
    }
  }

  template <typename Batch>
  Variable<T, D> forward_carried(const Variable<T, D>& x, const Batch& batch) const {
    State state;
    const Shape shape{1, batch.rows(), options_.hidden};
    for (const auto& hidden : hidden_) state.hidden.emplace_back(hidden.of(batch).reshape(shape));
    for (const auto& cell : cell_) state.cell.emplace_back(cell.of(batch).reshape(shape));
    auto [out, after] = forward(x, state);
    for (std::size_t layer = 0; layer < hidden_.size(); ++layer) hidden_[layer].keep(batch, after.hidden[layer].value());
    for (std::size_t layer = 0; layer < cell_.size(); ++layer) cell_[layer].keep(batch, after.cell[layer].value());
    return out;
  }

  State or_zeros(const State& state, std::int64_t batch) const {
    const auto checked = [&](const std::vector<Variable<T, D>>& states, const char* name) {
      if (states.empty()) {
        const auto zeros = Tensor<T, D>::zeros({num_directions(), batch, options_.hidden});
        return std::vector<Variable<T, D>>(layers_.size(), Variable<T, D>(zeros));
      }
      require(states.size() == layers_.size(), "{}: {} states for {} layers", this->name(), name, layers_.size());
      return states;
    };
    return {.hidden = checked(state.hidden, "hidden"),
            .cell = has_cell ? checked(state.cell, "cell") : std::vector<Variable<T, D>>()};
  }

  RecurrentOptions options_;
  std::vector<std::vector<Weights>> layers_;  // [layer][direction]
  std::deque<Carried<P, D>> hidden_;          // one for each layer; empty unless carried
  std::deque<Carried<P, D>> cell_;
};

template <typename P, typename D = Cpu>
using Lstm = Recurrent<P, ops::RecurrentCell::lstm, D>;
template <typename P, typename D = Cpu>
using Gru = Recurrent<P, ops::RecurrentCell::gru, D>;

}  // namespace nn
}  // namespace trireme
