#include "ops/cuda/bias.hpp"
#include "ops/cuda/matmul_plans.hpp"
#include "ops/linear_gelu_on.hpp"
#include "trireme/device/cuda.hpp"

namespace trireme::ops {
namespace {

template <typename T>
bool has_product(const MatmulShape& shape) {
  return !std::is_same_v<T, double> && shape.n % 8 == 0 && shape.k > 0;
}

template <typename T>
void run(const MatmulShape& shape, cuda::Gelu gelu, const cuda::MatmulOperands& operands) {
  if (shape.m == 0) return;
  cuda::run_matmul({.shape = shape, .gelu = gelu, .tf32 = std::is_same_v<T, float> && device::tf32_allowed()}, operands);
}

}  // namespace

template <>
template <typename T>
bool LinearGelu<Cuda>::forward(const MatmulShape& shape, const Tensor<T, Cuda>& x, const Tensor<T, Cuda>& weight,
                               const Tensor<Accumulate<T>, Cuda>& bias, Tensor<T, Cuda>& gelu_input, Tensor<T, Cuda>& y) {
  if (!has_product<T>(shape)) return false;
  const Tensor<T, Cuda> added = cuda::bias_for<T>(bias);
  run<T>(shape, cuda::Gelu::forward,
         {.a = x.data(), .b = weight.data(), .bias = added.data(), .gelu_input = gelu_input.data(), .c = y.data()});
  return true;
}

template <>
template <typename T>
bool LinearGelu<Cuda>::backward(const MatmulShape& shape, const Tensor<T, Cuda>& dy, const Tensor<T, Cuda>& weight,
                                const Tensor<T, Cuda>& gelu_input, Tensor<T, Cuda>& dx) {
  if (!has_product<T>(shape)) return false;
  run<T>(shape, cuda::Gelu::backward, {.a = dy.data(), .b = weight.data(), .gelu_input = gelu_input.data(), .c = dx.data()});
  return true;
}

TRIREME_INSTANTIATE_LINEAR_GELU(float, Cuda);
TRIREME_INSTANTIATE_LINEAR_GELU(double, Cuda);
TRIREME_INSTANTIATE_LINEAR_GELU(bfloat16, Cuda);
TRIREME_INSTANTIATE_LINEAR_GELU(float16, Cuda);

}  // namespace trireme::ops
