#pragma once

#include <cmath>
#include <vector>

#include "ops/compare.hpp"
#include "trireme/ops/recurrent/recurrent.hpp"

// Helpers for the tests of recurrent layers: cells, directions and ends of rows, and a layer of random values on a device.
namespace trireme::ops {

struct RecurrentCase {
  RecurrentCell cell;
  bool reverse;
  bool bias;
  std::vector<std::int32_t> lengths = {};  // empty: all rows are of full length
  std::int64_t batch = 3;
  std::int64_t time = 5;
  std::int64_t in = 7;
  std::int64_t hidden = 6;
};

inline std::vector<RecurrentCase> recurrent_cases() {
  std::vector<RecurrentCase> cases;
  for (const RecurrentCell cell : {RecurrentCell::lstm, RecurrentCell::gru}) {
    for (const bool reverse : {false, true}) {
      for (const bool bias : {false, true}) {
        cases.push_back({cell, reverse, bias, {}});
        cases.push_back({cell, reverse, bias, {2, 5, 1}});
      }
    }
  }
  return cases;
}

// A pass and its backward pass as an autograd node calls them; `out` has room for another direction, of which nothing may
// change.
template <typename T, typename D>
struct RecurrentLayer {
  explicit RecurrentLayer(const RecurrentCase& given) {
    const auto& [cell, reverse, bias, lengths, batch, time, in, hidden] = given;
    const std::int64_t gates = num_gates(cell) * hidden;
    const bool lstm = cell == RecurrentCell::lstm;
    std::uint32_t seed = 0;
    // Wide layers of such weights would be chaotic: rounding would decide the result after some steps.
    const double spread = hidden > 6 ? 0.7 / std::sqrt(static_cast<double>(hidden)) : 0.7;
    const auto random = [&](const Shape& shape) { return random_tensor<T>(shape, ++seed, spread).template to<D>(); };
    const auto random_where = [&](bool wanted, const Shape& shape) { return wanted ? random(shape) : Tensor<T, D>(); };
    const Shape state{batch, hidden};
    forward = {
        .cell = cell,
        .reverse = reverse,
        .x = random({batch, time, in}),
        .lengths = lengths.empty() ? Tensor<std::int32_t, D>() : Tensor<std::int32_t>::from({batch}, lengths).template to<D>(),
        .h0 = random(state),
        .c0 = random_where(lstm, state),
        .weights = {.weight_ih = random({gates, in}),
                    .weight_hh = random({gates, hidden}),
                    .bias_ih = random_where(bias, {gates}),
                    .bias_hh = random_where(bias, {gates})},
        .out = random({batch, time, 2 * hidden + 1}),
        .out_offset = hidden,
        .h_n = random(state),
        .c_n = random_where(lstm, state),
        .gates = random({batch, time, gates}),
        .inner = random({batch, time, hidden})};
    backward = {.dout = random(forward.out.shape()),
                .dh = random(state),
                .dc = random_where(lstm, state),
                .h_old = random({batch, time, hidden}),
                .drecurrent = random({batch, time, gates})};
  }

  std::vector<Tensor<T, D>> results_of_forward() const { return defined({forward.out, forward.h_n, forward.c_n}); }
  // `gates` are by then the gradient of the input's product.
  std::vector<Tensor<T, D>> results_of_backward() const {
    return defined({forward.gates, backward.dh, backward.dc, backward.h_old,
                    forward.cell == RecurrentCell::gru ? backward.drecurrent : Tensor<T, D>()});
  }

  RecurrentForward<T, D> forward;
  RecurrentBackward<T, D> backward;

 private:
  static std::vector<Tensor<T, D>> defined(std::vector<Tensor<T, D>> tensors) {
    std::erase_if(tensors, [](const Tensor<T, D>& tensor) { return !tensor.defined(); });
    return tensors;
  }
};

}  // namespace trireme::ops
