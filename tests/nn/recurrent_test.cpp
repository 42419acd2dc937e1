#include "trireme/nn/recurrent/recurrent.hpp"

#include "gradient_check.hpp"
#include "trireme/autograd/operations/reduce.hpp"

using namespace trireme;
using namespace trireme::tests;

namespace {

constexpr std::int64_t batch = 3, time_steps = 4, in = 2, hidden = 3;

Tensor<std::int32_t> lengths_of(const std::vector<std::int32_t>& lengths) {
  return Tensor<std::int32_t>::from({static_cast<std::int64_t>(lengths.size())}, lengths);
}

template <typename T>
Variable<T> square_sum(const Variable<T>& x) {
  return sum(multiply(x, x));
}

// Everything that a call returns, as one number.
template <typename Result>
auto total_of(const Result& result) {
  auto total = square_sum(result.out);
  for (const auto& state : result.state.hidden) total = add(total, square_sum(state));
  for (const auto& state : result.state.cell) total = add(total, square_sum(state));
  return total;
}

template <ops::RecurrentCell kind>
void check_gradients_of(const nn::RecurrentOptions& options, const Tensor<std::int32_t>& lengths) {
  nn::Recurrent<Float64, kind> module(options);
  module.initialize({.seed = 4});
  const std::int64_t directions = options.bidirectional ? 2 : 1;
  const bool cells = kind == ops::RecurrentCell::lstm;
  using State = typename nn::Recurrent<Float64, kind>::State;
  std::vector<Tensor<double>> inputs{random({batch, time_steps, in}, 1)};
  for (int state = 0; state < options.layers * (cells ? 2 : 1); ++state) {
    inputs.push_back(random({directions, batch, hidden}, 2 + static_cast<std::uint64_t>(state)));
  }
  const auto evaluate = [&](const std::vector<Variable<double>>& given) {
    const auto first_cell = given.begin() + 1 + options.layers;
    return total_of(
        module.forward(given[0], State{.hidden = {given.begin() + 1, first_cell}, .cell = {first_cell, given.end()}}, lengths));
  };
  const auto of_inputs = testing::check_gradients(evaluate, inputs, {.tape = {.seed = 2}});
  INFO(of_inputs.where);
  CHECK(of_inputs.passed);
  const std::vector<Variable<double>> constants(inputs.begin(), inputs.end());
  const auto of_parameters =
      testing::check_parameter_gradients(module.store(), [&] { return evaluate(constants); }, {.tape = {.seed = 2}});
  INFO(of_parameters.where);
  CHECK(of_parameters.passed);
}

template <typename T>
void require_close(const Tensor<T>& a, const Tensor<T>& b) {
  REQUIRE(a.shape() == b.shape());
  double largest = 0;
  for (std::int64_t index = 0; index < a.numel(); ++index) {
    largest = std::max(largest, std::abs(static_cast<double>(a.data()[index] - b.data()[index])));
  }
  CHECK(largest <= 1e-12);
}

}  // namespace

TEST_CASE("gradients of LSTM and GRU: layers, directions, lengths, dropout, no bias") {
  const auto lengths = lengths_of({2, 4, 1});
  for (const bool bidirectional : {false, true}) {
    for (const auto& ends : {Tensor<std::int32_t>(), lengths}) {
      const nn::RecurrentOptions options{
          .in = in, .hidden = hidden, .layers = 2, .bidirectional = bidirectional, .bias = !bidirectional, .dropout = 0.3};
      check_gradients_of<ops::RecurrentCell::lstm>(options, ends);
      check_gradients_of<ops::RecurrentCell::gru>(options, ends);
    }
  }
}

// As torch's packed sequences: a row behaves as if it were alone, with its own length.
TEMPLATE_TEST_CASE("a batch of rows of different lengths gives what each row gives alone", "", nn::Lstm<Float64>,
                   nn::Gru<Float64>) {
  TestType module({.in = in, .hidden = hidden, .layers = 2, .bidirectional = true});
  module.initialize({.seed = 1});
  Tensor<double> x = random({batch, time_steps, in}, 1);
  const std::vector<std::int32_t> lengths{2, 4, 1};
  const auto together = module.forward(x, {}, lengths_of(lengths));
  for (std::int64_t row = 0; row < batch; ++row) {
    const std::int64_t length = lengths[static_cast<std::size_t>(row)];
    const auto flat = x.reshape({batch * time_steps, in});
    const auto alone = module.forward(flat.narrow(row * time_steps, length).reshape({1, length, in}));
    const auto outputs = together.out.value().reshape({batch * time_steps, 2 * hidden});
    require_close(outputs.narrow(row * time_steps, length), alone.out.value().reshape({length, 2 * hidden}));
    const auto padding = outputs.narrow(row * time_steps + length, time_steps - length);
    require_close(padding, Tensor<double>::zeros(padding.shape()));
    for (std::size_t layer = 0; layer < alone.state.hidden.size(); ++layer) {
      for (std::int64_t direction = 0; direction < 2; ++direction) {
        const auto of_row = [&](const Variable<double>& states, std::int64_t index) {
          return states.value().narrow(direction, 1).reshape({states.shape()[1], hidden}).narrow(index, 1);
        };
        require_close(of_row(together.state.hidden[layer], row), of_row(alone.state.hidden[layer], 0));
        if (alone.state.cell.empty()) continue;
        require_close(of_row(together.state.cell[layer], row), of_row(alone.state.cell[layer], 0));
      }
    }
  }
}

TEMPLATE_TEST_CASE("a sequence in two parts, the state carried over, gives what it gives at once", "", nn::Lstm<Float64>,
                   nn::Gru<Float64>) {
  TestType module({.in = in, .hidden = hidden, .layers = 2});
  module.initialize({.seed = 1});
  const auto x = random({1, 6, in}, 1);
  const auto whole = module.forward(x);
  const auto first = module.forward(x.reshape({6, in}).narrow(0, 4).reshape({1, 4, in}));
  const auto second = module.forward(x.reshape({6, in}).narrow(4, 2).reshape({1, 2, in}), first.state.detached());
  require_close(whole.out.value().reshape({6, hidden}).narrow(4, 2), second.out.value().reshape({2, hidden}));
  require_close(whole.state.hidden.back().value(), second.state.hidden.back().value());
}

TEST_CASE("a carried state has no gradient once it is detached") {
  nn::Gru<Float64> module({.in = in, .hidden = hidden});
  module.initialize({.seed = 1});
  const auto x = random({2, 3, in}, 1);
  Tape tape;
  const auto first = module.forward(x);
  CHECK(first.state.hidden.front().slot() != nullptr);
  CHECK(first.state.detached().hidden.front().slot() == nullptr);
}

TEMPLATE_TEST_CASE("a batch of no rows has outputs, states and gradients of none", "", nn::Lstm<Float64>, nn::Gru<Float64>) {
  TestType module({.in = in, .hidden = hidden, .layers = 2, .bidirectional = true});
  module.initialize({.seed = 1});
  Shape of_gradient;
  Tape tape;
  const auto x = watch(Tensor<double>({0, 4, in}), [&](const Tensor<double>& d) { of_gradient = d.shape(); });
  const auto result = module.forward(x);
  CHECK(result.out.shape() == Shape{0, 4, 2 * hidden});
  CHECK(result.state.hidden.back().shape() == Shape{2, 0, hidden});
  sum(result.out).backward();
  CHECK(of_gradient == Shape{0, 4, in});
  CHECK_THROWS_WITH(module.forward(Tensor<double>({2, 0, in})), ContainsSubstring("has no steps"));
}

TEST_CASE("recurrent modules name wrong shapes and lengths") {
  nn::Lstm<Float64> module({.in = in, .hidden = hidden});
  module.initialize({.seed = 1});
  const auto x = random({batch, time_steps, in}, 1);
  CHECK_THROWS_WITH(module.forward(random({batch, time_steps, in + 1}, 1)), ContainsSubstring("[batch, time, 2]"));
  CHECK_THROWS_WITH(module.forward(x, {}, lengths_of({1, 5, 2})), ContainsSubstring("a length of 5 does not lie in [1, 4]"));
  CHECK_THROWS_WITH(module.forward(x, {}, lengths_of({1, 2})), ContainsSubstring("lengths"));
  const Variable<double> narrow(Tensor<double>::zeros({1, batch, hidden + 1}));
  CHECK_THROWS_WITH(module.forward(x, {.hidden = {narrow}, .cell = {}}), ContainsSubstring("h0 has shape [1, 3, 4]"));
  CHECK_THROWS_WITH(nn::Lstm<Float64>({.in = 0, .hidden = 2}), ContainsSubstring("above 0"));
}
