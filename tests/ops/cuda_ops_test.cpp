#include "ops/cuda_compare.hpp"
#include "trireme/ops/elementwise/cast.hpp"
#include "trireme/ops/elementwise/elementwise.hpp"
#include "trireme/ops/embedding/positions.hpp"
#include "trireme/ops/pointwise/functions.hpp"

// Every operation on the GPU against the same on the CPU, which other tests compare with PyTorch and with plain loops.
using namespace trireme;
using namespace trireme::ops;

namespace {

// Sizes with and without whole packs of 16 bytes, and one beyond a grid.
const std::vector<std::int64_t> counts{1, 7, 8, 1000, 1'000'003, 5'000'000};

}  // namespace

TEMPLATE_TEST_CASE("activations and their gradients", "", float, double, bfloat16, float16) {
  using T = TestType;
  for (const std::int64_t count : counts) {
    const auto x = random_tensor<T>({count}, 1, 3);
    const auto dy = random_tensor<T>({count}, 2);
    for (const auto kind : {Activation::gelu_tanh, Activation::gelu_erf, Activation::relu, Activation::silu,
                            Activation::sigmoid, Activation::tanh}) {
      CAPTURE(count, static_cast<int>(kind));
      Tensor<T> y(x.shape());
      Tensor<T, Cuda> y_there(x.shape());
      activation(kind, x, y);
      activation(kind, x.template to<Cuda>(), y_there);
      require_same(y_there, y);
      for (const bool accumulate : {false, true}) {
        Tensor<T> dx = dy.clone();
        Tensor<T, Cuda> dx_there = dy.template to<Cuda>();
        activation_backward(kind, x, dy, dx, accumulate);
        activation_backward(kind, x.template to<Cuda>(), dy.template to<Cuda>(), dx_there, accumulate);
        require_same(dx_there, dx);
      }
    }
  }
}

TEMPLATE_TEST_CASE("gated activations and both their gradients", "", float, double, bfloat16, float16) {
  using T = TestType;
  for (const std::int64_t count : counts) {
    const auto gate = random_tensor<T>({count}, 1, 3), x = random_tensor<T>({count}, 2), dy = random_tensor<T>({count}, 3);
    const auto gate_there = gate.template to<Cuda>(), x_there = x.template to<Cuda>(), dy_there = dy.template to<Cuda>();
    for (const auto kind : {Activation::gelu_tanh, Activation::gelu_erf, Activation::relu, Activation::silu,
                            Activation::sigmoid, Activation::tanh}) {
      CAPTURE(count, static_cast<int>(kind));
      Tensor<T> y(gate.shape());
      Tensor<T, Cuda> y_there(gate.shape()), left_out;
      gated_activation(kind, gate, x, y);
      gated_activation(kind, gate_there, x_there, y_there);
      require_same(y_there, y);
      for (const bool accumulate : {false, true}) {
        Tensor<T> dgate = x.clone(), dx = dy.clone();
        Tensor<T, Cuda> dgate_there = x_there.clone(), dx_there = dy_there.clone();
        gated_activation_backward(kind, gate, x, dy, dgate, accumulate, dx, accumulate);
        gated_activation_backward(kind, gate_there, x_there, dy_there, dgate_there, accumulate, left_out, false);
        gated_activation_backward(kind, gate_there, x_there, dy_there, left_out, false, dx_there, accumulate);
        require_same(dgate_there, dgate);
        require_same(dx_there, dx);
      }
    }
  }
}

TEMPLATE_TEST_CASE("sums, products and multiples", "", float, double, bfloat16, float16) {
  using T = TestType;
  for (const std::int64_t count : counts) {
    CAPTURE(count);
    const auto a = random_tensor<T>({count + 1}, 1).narrow(1, count);  // not aligned to 16 bytes
    const auto b = random_tensor<T>({count}, 2);
    const auto a_there = random_tensor<T>({count + 1}, 1).template to<Cuda>().narrow(1, count);
    const auto b_there = b.template to<Cuda>();
    Tensor<T> c = b.clone();
    Tensor<T, Cuda> c_there = b_there.clone();
    multiply(a, b, c, true);
    multiply(a_there, b_there, c_there, true);
    require_same(c_there, c);
    scale(a, Accumulate<T>(0.5), c, true);
    scale(a_there, Accumulate<T>(0.5), c_there, true);
    require_same(c_there, c);
    add(a, c, c);
    add(a_there, c_there, c_there);
    require_same(c_there, c);
  }
}

TEMPLATE_TEST_CASE("differences, quotients and shifted elements", "", float, double, bfloat16, float16) {
  using T = TestType;
  for (const std::int64_t count : counts) {
    CAPTURE(count);
    const auto a = random_tensor<T>({count + 1}, 1).narrow(1, count);  // not aligned to 16 bytes
    auto b = random_tensor<T>({count}, 2);
    for (T& element : b.span()) {  // away from 0
      if (std::abs(static_cast<float>(element)) < 0.25F) element = T(-0.5F);
    }
    const auto a_there = random_tensor<T>({count + 1}, 1).template to<Cuda>().narrow(1, count);
    const auto b_there = b.template to<Cuda>();
    Tensor<T> c(b.shape());
    Tensor<T, Cuda> c_there(b.shape());
    subtract(a, b, c);
    subtract(a_there, b_there, c_there);
    require_same(c_there, c);
    divide(a, b, c, true);
    divide(a_there, b_there, c_there, true);
    require_same(c_there, c);
    shift(c, Accumulate<T>(0.5), c);
    shift(c_there, Accumulate<T>(0.5), c_there);
    require_same(c_there, c);
    for (const bool accumulate : {true, false}) {
      divide_backward_divisor(a, b, b, c, accumulate);
      divide_backward_divisor(a_there, b_there, b_there, c_there, accumulate);
      require_same(c_there, c);
    }
  }
}

TEMPLATE_TEST_CASE("leaky_relu, softplus and dropout", "", float, double, bfloat16, float16) {
  using T = TestType;
  const RandomKey key{.seed = 1, .stream = 2, .step = 3, .first_index = 5};
  for (const std::int64_t count : counts) {
    CAPTURE(count);
    const auto x = random_tensor<T>({count}, 1, 3);
    const auto x_there = x.template to<Cuda>();
    Tensor<T> y = x.clone();
    Tensor<T, Cuda> y_there = x_there.clone();
    leaky_relu(x, 0.1, y);
    leaky_relu(x_there, 0.1, y_there);
    require_same(y_there, y);
    softplus(x, {}, y);
    softplus(x_there, {}, y_there);
    require_same(y_there, y);
    for (const bool accumulate : {false, true}) {
      leaky_relu_backward(x, 0.1, x, y, accumulate);
      leaky_relu_backward(x_there, 0.1, x_there, y_there, accumulate);
      softplus_backward(x, {.beta = 2}, x, y, true);
      softplus_backward(x_there, {.beta = 2}, x_there, y_there, true);
      dropout(x, 0.3, key, y, accumulate);
      dropout(x_there, 0.3, key, y_there, accumulate);
      require_same(y_there, y);
    }
  }
}

TEMPLATE_TEST_CASE("casts, to the nearest", "", bfloat16, float16) {
  for (const std::int64_t count : counts) {
    CAPTURE(count);
    const auto x = random_tensor<float>({count}, 1, 100);
    Tensor<TestType> halves(x.shape());
    Tensor<TestType, Cuda> halves_there(x.shape());
    cast(x, halves);
    cast(x.to<Cuda>(), halves_there);
    require_identical(halves_there.template to<Cpu>(), halves);
    Tensor<float> back = x.clone();
    Tensor<float, Cuda> back_there = x.to<Cuda>();
    cast(halves, back, true);
    cast(halves_there, back_there, true);
    require_identical(back_there.to<Cpu>(), back);
  }
}

TEST_CASE("casts of whole numbers and of double") {
  const auto x = random_index(1000, 5000, 1);
  const auto there = x.to<Cuda>();
  require_identical(cast<float>(there).to<Cpu>(), cast<float>(x));
  require_identical(cast<double>(cast<std::int64_t>(there)).to<Cpu>(), cast<double>(x));
  require_identical(cast<std::int32_t>(gt(there, 2500)).to<Cpu>(), cast<std::int32_t>(gt(x, 2500)));
  const auto y = random_tensor<double>({1000}, 2);
  require_identical(cast<float>(y.to<Cuda>()).to<Cpu>(), cast<float>(y));
}

TEST_CASE("positions in their sequences") {
  Tensor<std::int32_t> y({77});
  Tensor<std::int32_t, Cuda> y_there({77});
  positions(5, 12, y);
  positions(5, 12, y_there);
  require_identical(y_there.to<Cpu>(), y);
  CHECK(y.span()[7] == 0);
}
