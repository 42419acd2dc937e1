#include <cmath>

#include "ops/recurrent/recurrent_on.hpp"
#include "ops/recurrent/recurrent_steps.hpp"
#include "ops/recurrent_case.hpp"
#include "ops/team_compare.hpp"

// The steps of a GPU's recurrent layers, element by element, against those of the CPU.
using namespace trireme;
using namespace trireme::ops;

namespace {

// The elements of a step in an order of their own: on a GPU they have none.
template <typename Step>
void run_step(const Step& step) {
  const std::int64_t count = step.rows.batch * step.rows.hidden;
  for (std::int64_t i = 0; i < count; i += 2) step(i);
  for (std::int64_t i = 1; i < count; i += 2) step(i);
}

template <typename T>
void forward_by_steps(const RecurrentForward<T>& pass) {
  Tensor<T> gates = pass.gates;
  linear(pass.x, pass.weights.weight_ih, pass.weights.bias_ih, gates);
  forward_steps(pass, recurrent_rows(pass), [](const RecurrentStep<T>& step) { run_step(step); });
}

template <typename T>
void backward_by_steps(const RecurrentForward<T>& pass, const RecurrentBackward<T>& backward) {
  backward_steps(pass, backward, recurrent_rows(pass), [](const RecurrentBackwardStep<T>& step) { run_step(step); });
}

template <typename T>
void require_same(const std::vector<Tensor<T>>& got, const std::vector<Tensor<T>>& expected) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    require_close(got[i], as_doubles(expected[i]), tolerance<T>(1e-6));
  }
}

}  // namespace

TEMPLATE_TEST_CASE("recurrent layers step by step", "", float, double) {
  for (const RecurrentCase& of : recurrent_cases()) {
    CAPTURE(of.cell, of.reverse, of.bias, of.lengths);
    const RecurrentLayer<TestType, Cpu> expected(of);
    recurrent(expected.forward);
    const RecurrentLayer<TestType, Cpu> got(of);
    forward_by_steps(got.forward);
    require_same(got.results_of_forward(), expected.results_of_forward());
    recurrent_backward(expected.forward, expected.backward);
    backward_by_steps(got.forward, got.backward);
    require_same(got.results_of_backward(), expected.results_of_backward());
  }
}

TEST_CASE("a row whose length is none becomes NaN, no other does") {
  for (const RecurrentCell cell : {RecurrentCell::lstm, RecurrentCell::gru}) {
    for (const std::int32_t wrong : {0, -3, 6}) {
      const RecurrentCase of{.cell = cell, .reverse = true, .bias = true, .lengths = {2, wrong, 5}};
      const RecurrentLayer<double, Cpu> layer(of);
      forward_by_steps(layer.forward);
      backward_by_steps(layer.forward, layer.backward);
      for (const Tensor<double>& states : {layer.forward.h_n, layer.backward.dh}) {
        for (std::int64_t i = 0; i < states.numel(); ++i) {
          CHECK(std::isnan(states.span()[static_cast<std::size_t>(i)]) == (i / of.hidden == 1));
        }
      }
    }
  }
}
