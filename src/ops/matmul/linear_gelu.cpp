#include "ops/matmul/linear_gelu_on.hpp"

namespace trireme::ops {

template <>
template <typename T>
bool LinearGelu<Cpu>::forward(const MatmulShape&, const Tensor<T, Cpu>&, const Tensor<T, Cpu>&,
                              const Tensor<Accumulate<T>, Cpu>&, Tensor<T, Cpu>&, Tensor<T, Cpu>&) {
  return false;
}

template <>
template <typename T>
bool LinearGelu<Cpu>::backward(const MatmulShape&, const Tensor<T, Cpu>&, const Tensor<T, Cpu>&, const Tensor<T, Cpu>&,
                               Tensor<T, Cpu>&) {
  return false;
}

TRIREME_INSTANTIATE_LINEAR_GELU(float, Cpu);
TRIREME_INSTANTIATE_LINEAR_GELU(double, Cpu);
TRIREME_INSTANTIATE_LINEAR_GELU(bfloat16, Cpu);
TRIREME_INSTANTIATE_LINEAR_GELU(float16, Cpu);

}  // namespace trireme::ops
