#include "ops/cuda/linear_gelu.hpp"

#include "ops/cuda/bias.hpp"
#include "ops/cuda/matmul_plans.hpp"
#include "ops/matmul_on.hpp"
#include "trireme/device/cuda.hpp"

namespace trireme::ops::cuda {
namespace {

template <typename T>
void run(std::string_view op, const MatmulShape& shape, Gelu gelu, const Tensor<T, Cuda>& a, const Tensor<T, Cuda>& b,
         const Tensor<Accumulate<T>, Cuda>& bias, const Tensor<T, Cuda>& gelu_input, Tensor<T, Cuda>& c) {
  require_shape(op, "gelu_input", gelu_input.shape(), c.shape());
  require(shape.n % 8 == 0 && shape.k > 0, "{}: {} columns made of {}, but needs a multiple of 8 made of some", op, shape.n,
          shape.k);
  if (c.numel() == 0) return;
  const Tensor<T, Cuda> added = bias_for<T>(bias);
  run_matmul({.shape = shape, .gelu = gelu, .tf32 = std::is_same_v<T, float> && device::tf32_allowed()},
             {.a = a.data(), .b = b.data(), .bias = added.data(), .gelu_input = gelu_input.data(), .c = c.data()});
}

}  // namespace

template <typename T>
void linear_gelu(const Tensor<T, Cuda>& x, const Tensor<T, Cuda>& weight, const Tensor<Accumulate<T>, Cuda>& bias,
                 Tensor<T, Cuda>& gelu_input, Tensor<T, Cuda>& y) {
  MatmulShape shape = matmul_shape<T, T>(x.shape(), weight.shape(), y.shape(), {.transpose_b = true});
  shape.bias = bias.defined();
  if (shape.bias) require_count("linear_gelu", "bias", bias.shape(), shape.n);
  run("linear_gelu", shape, Gelu::forward, x, weight, bias, gelu_input, y);
}

template <typename T>
void linear_gelu_backward(const Tensor<T, Cuda>& dy, const Tensor<T, Cuda>& weight, const Tensor<T, Cuda>& gelu_input,
                          Tensor<T, Cuda>& dx) {
  const MatmulShape shape = matmul_shape<T, T>(dy.shape(), weight.shape(), dx.shape(), {});
  run("linear_gelu_backward", shape, Gelu::backward, dy, weight, {}, gelu_input, dx);
}

#define TRIREME_INSTANTIATE(T)                                                                                  \
  template void linear_gelu(const Tensor<T, Cuda>&, const Tensor<T, Cuda>&, const Tensor<Accumulate<T>, Cuda>&, \
                            Tensor<T, Cuda>&, Tensor<T, Cuda>&);                                                \
  template void linear_gelu_backward(const Tensor<T, Cuda>&, const Tensor<T, Cuda>&, const Tensor<T, Cuda>&, Tensor<T, Cuda>&)
TRIREME_INSTANTIATE(float);
TRIREME_INSTANTIATE(bfloat16);
TRIREME_INSTANTIATE(float16);
#undef TRIREME_INSTANTIATE

}  // namespace trireme::ops::cuda
