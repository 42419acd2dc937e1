#include <cmath>

#include "catch.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/core/philox.hpp"
#include "trireme/ops/loss.hpp"
#include "trireme/testing/gradient_check.hpp"

using namespace trireme;
using testing::check_gradients;

namespace {

Tensor<double> random(const Shape& shape, std::uint64_t stream) {
  Tensor<double> tensor(shape);
  for (std::int64_t index = 0; index < tensor.numel(); ++index) {
    tensor.data()[index] = philox_normal(11, stream, static_cast<std::uint64_t>(index));
  }
  return tensor;
}

using Inputs = std::vector<Variable<double>>;

void expect_passed(const testing::GradientCheck& check) {
  INFO(check.where);
  CHECK(check.passed);
}

}  // namespace

TEST_CASE("gradients of arithmetic") {
  expect_passed(check_gradients([](const Inputs& in) { return add(in[0], in[1]); }, {random({3, 4}, 1), random({3, 4}, 2)}));
  expect_passed(check_gradients([](const Inputs& in) { return multiply(in[0], in[1]); }, {random({5}, 1), random({5}, 2)}));
  expect_passed(check_gradients([](const Inputs& in) { return multiply(in[0], in[0]); }, {random({5}, 1)}));
  expect_passed(check_gradients([](const Inputs& in) { return scale(in[0], -2.5); }, {random({2, 3}, 1)}));
  expect_passed(check_gradients([](const Inputs& in) { return reshape(in[0], {6}); }, {random({2, 3}, 1)}));
  expect_passed(check_gradients([](const Inputs& in) { return sum(in[0]); }, {random({7}, 1)}));
}

TEST_CASE("gradients of activations") {
  using ops::Activation;
  for (const auto kind : {Activation::gelu_tanh, Activation::gelu_erf, Activation::relu, Activation::silu, Activation::sigmoid,
                          Activation::tanh}) {
    CAPTURE(static_cast<int>(kind));
    expect_passed(check_gradients([kind](const Inputs& in) { return activation(kind, in[0]); }, {random({37}, 3)}));
  }
}

TEST_CASE("gradients of activations with parameters, softmax and transpose") {
  expect_passed(check_gradients([](const Inputs& in) { return leaky_relu(in[0], 0.2); }, {random({37}, 3)}));
  expect_passed(
      check_gradients([](const Inputs& in) { return softplus(in[0], {.beta = 3, .threshold = 2}); }, {random({37}, 3)}));
  for (const int dim : {-1, 0, 1}) {
    CAPTURE(dim);
    expect_passed(check_gradients([=](const Inputs& in) { return softmax(in[0], dim); }, {random({3, 4, 5}, 1)}));
    expect_passed(check_gradients([=](const Inputs& in) { return log_softmax(in[0], dim); }, {random({3, 4, 5}, 1)}));
  }
  expect_passed(check_gradients([](const Inputs& in) { return transpose(in[0], 0, 2); }, {random({2, 3, 4, 2}, 1)}));
}

TEST_CASE("gradients of linear") {
  expect_passed(check_gradients([](const Inputs& in) { return linear(in[0], in[1], in[2]); },
                                {random({2, 3, 5}, 1), random({4, 5}, 2), random({4}, 3)}));
  expect_passed(check_gradients([](const Inputs& in) { return linear(in[0], in[1]); }, {random({3, 5}, 1), random({4, 5}, 2)}));
}

TEST_CASE("gradients of layer norm, alone and with a residual that is used again") {
  expect_passed(check_gradients([](const Inputs& in) { return layer_norm(in[0], in[1], in[2], 1e-5); },
                                {random({3, 8}, 1), random({8}, 2), random({8}, 3)}));
  expect_passed(check_gradients(
      [](const Inputs& in) {
        const auto [stream, normalized] = residual_layer_norm(in[0], in[1], in[2], in[3], 1e-5);
        return add(stream, normalized);
      },
      {random({3, 8}, 1), random({3, 8}, 2), random({8}, 3), random({8}, 4)}));
  expect_passed(check_gradients([](const Inputs& in) { return residual_layer_norm(in[0], in[1], in[2], in[3], 1e-5).first; },
                                {random({3, 8}, 1), random({3, 8}, 2), random({8}, 3), random({8}, 4)}));
}

TEST_CASE("gradients of causal attention") {
  expect_passed(check_gradients([](const Inputs& in) { return causal_attention(in[0], 2); }, {random({2, 7, 24}, 1)}));
}

TEST_CASE("gradients of embeddings and of the cross-entropy with an ignored target") {
  const auto index = Tensor<std::int32_t>::from({2, 3}, std::vector<std::int32_t>{1, 0, 4, 4, 2, 1});
  expect_passed(check_gradients([&](const Inputs& in) { return embedding(index, in[0]); }, {random({5, 3}, 1)}));
  expect_passed(check_gradients([&](const Inputs& in) { return token_embedding(index, in[0], in[1]); },
                                {random({5, 3}, 1), random({4, 3}, 2)}));
  const auto targets = Tensor<std::int32_t>::from({3}, std::vector<std::int32_t>{3, ops::ignored_target, 0});
  expect_passed(check_gradients([&](const Inputs& in) { return cross_entropy(in[0], targets).sum; }, {random({3, 4}, 1)}));
}

TEST_CASE("gradients of dropout") {
  expect_passed(check_gradients([](const Inputs& in) { return dropout(in[0], 0.3, "layer"); }, {random({4, 9}, 1)},
                                {.tape = {.seed = 5, .step = 2}}));
}

TEST_CASE("the check sees a wrong gradient") {
  const auto wrong = [](const Inputs& in) {
    Tensor<double> y(in[0].shape());
    ops::multiply(in[0].value(), in[0].value(), y);
    return record("wrong square", y, {in[0].slot()}, [dx = in[0].gradient()](const Tensor<double>& dy) { dx.give(dy); });
  };
  CHECK_FALSE(check_gradients(wrong, {random({3}, 1)}).passed);
}
