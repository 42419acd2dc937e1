#include <algorithm>

#include "device/cuda/check.hpp"
#include "device/cuda/stream.hpp"
#include "ops/matmul/add_bias_cuda.hpp"
#include "ops/matmul/bias_cuda.hpp"
#include "ops/matmul/matmul_on.hpp"
#include "ops/matmul/matmul_plans_cuda.hpp"
#include "precision/instantiate.hpp"
#include "trireme/device/cuda.hpp"

namespace trireme::ops {

template <>
template <typename T, typename C>
void Matmul<Cuda>::run(MatmulShape shape, const Tensor<T, Cuda>& a, const Tensor<T, Cuda>& b,
                       const Tensor<Accumulate<T>, Cuda>& bias, Tensor<C, Cuda>& c) {
  if (shape.m == 0 || shape.n == 0) return;
  if (shape.k == 0) {  // a sum over no products: computed as one product of zeros
    const auto zeros = Tensor<T, Cuda>::zeros({std::max(shape.m, shape.n)});
    shape.k = 1;
    return run(shape, zeros, zeros, bias, c);
  }
  cuda::MatmulProblem problem{.shape = shape, .tf32 = std::is_same_v<T, float> && device::tf32_allowed()};
  cuda::MatmulOperands operands{.a = a.data(), .b = b.data(), .c = c.data()};
  if (!shape.bias) return cuda::run_matmul(problem, operands);
  const Tensor<C, Cuda> added = cuda::bias_for<C>(bias);
  operands.bias = added.data();
  if (cuda::try_matmul(problem, operands)) return;
  problem.shape.bias = false;
  operands.bias = nullptr;
  cuda::run_matmul(problem, operands);
  device::check_cuda(cuda::add_bias(c.data(), bias.data(), c.numel(), shape.n, device::native_stream()), "add_bias");
}

TRIREME_EACH(FLOATS, TRIREME_MATMUL, Cuda)
TRIREME_INSTANTIATE(HALVES, matmul, float, Cuda)
TRIREME_INSTANTIATE(FLOATS, linear, Cuda)

}  // namespace trireme::ops
