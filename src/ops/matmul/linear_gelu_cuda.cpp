#include "ops/matmul/bias_cuda.hpp"
#include "ops/matmul/linear_gelu_on.hpp"
#include "ops/matmul/matmul_plans_cuda.hpp"
#include "precision/instantiate.hpp"
#include "trireme/device/cuda.hpp"

namespace trireme::ops {
namespace {

template <typename T>
bool run(const MatmulShape& shape, cuda::Gelu gelu, const cuda::MatmulOperands& operands) {
  if (std::is_same_v<T, double> || shape.n % 8 != 0 || shape.m == 0 || shape.n == 0 || shape.k == 0) return false;
  const bool tf32 = std::is_same_v<T, float> && device::tf32_allowed();
  return cuda::try_matmul({.shape = shape, .gelu = gelu, .tf32 = tf32}, operands);
}

}  // namespace

template <>
template <typename T>
bool LinearGelu<Cuda>::forward(const MatmulShape& shape, const Tensor<T, Cuda>& x, const Tensor<T, Cuda>& weight,
                               const Tensor<Accumulate<T>, Cuda>& bias, Tensor<T, Cuda>& gelu_input, Tensor<T, Cuda>& y) {
  const Tensor<T, Cuda> added = cuda::bias_for<T>(bias);
  return run<T>(shape, cuda::Gelu::forward,
                {.a = x.data(), .b = weight.data(), .bias = added.data(), .gelu_input = gelu_input.data(), .c = y.data()});
}

template <>
template <typename T>
bool LinearGelu<Cuda>::backward(const MatmulShape& shape, const Tensor<T, Cuda>& dy, const Tensor<T, Cuda>& weight,
                                const Tensor<T, Cuda>& gelu_input, Tensor<T, Cuda>& dx) {
  return run<T>(shape, cuda::Gelu::backward,
                {.a = dy.data(), .b = weight.data(), .gelu_input = gelu_input.data(), .c = dx.data()});
}

TRIREME_INSTANTIATE(FLOATS, linear_gelu, Cuda)
TRIREME_INSTANTIATE(FLOATS, linear_gelu_backward, Cuda)

}  // namespace trireme::ops
