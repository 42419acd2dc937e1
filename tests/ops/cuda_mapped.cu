#include "ops/cuda_mapped.hpp"
#include "trireme/autograd/operations/map.hpp"
#include "trireme/core/host_device.hpp"

namespace trireme::tests {
namespace {

struct Gated {
  TRIREME_HOST_DEVICE auto operator()(auto gate, auto up) const { return gate * sigmoid(gate) * up; }
};

}  // namespace

template <typename T, typename D>
Variable<T, D> gated(const Variable<T, D>& gate, const Variable<T, D>& up) {
  return map(Gated{}, gate, up);
}

template Variable<float, Cuda> gated(const Variable<float, Cuda>&, const Variable<float, Cuda>&);
template Variable<bfloat16, Cuda> gated(const Variable<bfloat16, Cuda>&, const Variable<bfloat16, Cuda>&);
template Variable<float16, Cuda> gated(const Variable<float16, Cuda>&, const Variable<float16, Cuda>&);
template Variable<float, Cpu> gated(const Variable<float, Cpu>&, const Variable<float, Cpu>&);
template Variable<bfloat16, Cpu> gated(const Variable<bfloat16, Cpu>&, const Variable<bfloat16, Cpu>&);
template Variable<float16, Cpu> gated(const Variable<float16, Cpu>&, const Variable<float16, Cpu>&);

Tensor<float, Cuda> halves_of_squares(const Tensor<float, Cuda>& x) {
  return map([] __device__(auto value) { return select(value > 0, value * value / 2, 0); }, x);
}

}  // namespace trireme::tests
