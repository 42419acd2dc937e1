#include "ops/matmul/linear_gelu_on.hpp"
#include "precision/instantiate.hpp"

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

TRIREME_INSTANTIATE(FLOATS, linear_gelu, Cpu)
TRIREME_INSTANTIATE(FLOATS, linear_gelu_backward, Cpu)

}  // namespace trireme::ops
