#include "ops/experts/experts_on.hpp"
#include "precision/instantiate.hpp"
#include "trireme/device/cuda.hpp"

// A GPU has no kernels for grouped products and for the order of rows: every function here throws.
namespace trireme::ops {
namespace {

[[noreturn]] void refuse() {
  throw Error({.message = "a mixture of experts has no kernels for GPUs yet: train it on the CPU"});
}

}  // namespace

template <>
template <typename T>
void ExpertWork<Cuda>::take(const ExpertRows&, const Tensor<T, Cuda>&, Tensor<T, Cuda>&) {
  refuse();
}

template <>
template <typename T>
void ExpertWork<Cuda>::take_backward(const ExpertRows&, const Tensor<T, Cuda>&, Tensor<T, Cuda>&, bool) {
  refuse();
}

template <>
template <typename T>
void ExpertWork<Cuda>::linear(const ExpertRows&, const Tensor<T, Cuda>&, const Tensor<T, Cuda>&, Tensor<T, Cuda>&) {
  refuse();
}

template <>
template <typename T>
void ExpertWork<Cuda>::input_gradient(const ExpertRows&, const Tensor<T, Cuda>&, const Tensor<T, Cuda>&, Tensor<T, Cuda>&,
                                      bool) {
  refuse();
}

template <>
template <typename T>
void ExpertWork<Cuda>::weight_gradient(const ExpertRows&, const Tensor<T, Cuda>&, const Tensor<T, Cuda>&,
                                       Tensor<Accumulate<T>, Cuda>&, bool) {
  refuse();
}

template <>
template <typename T>
void ExpertWork<Cuda>::combine(const ExpertRows&, const Tensor<T, Cuda>&, const Tensor<Accumulate<T>, Cuda>&,
                               Tensor<T, Cuda>&) {
  refuse();
}

template <>
template <typename T>
void ExpertWork<Cuda>::combine_backward(const ExpertRows&, const Tensor<T, Cuda>&, const Tensor<T, Cuda>&,
                                        const Tensor<Accumulate<T>, Cuda>&, Tensor<T, Cuda>&, Tensor<Accumulate<T>, Cuda>&) {
  refuse();
}

TRIREME_INSTANTIATE(FLOATS, take_expert_rows, Cuda)
TRIREME_INSTANTIATE(FLOATS, take_expert_rows_backward, Cuda)
TRIREME_INSTANTIATE(FLOATS, expert_linear, Cuda)
TRIREME_INSTANTIATE(FLOATS, expert_linear_input_gradient, Cuda)
TRIREME_INSTANTIATE(FLOATS, expert_linear_weight_gradient, Cuda)
TRIREME_INSTANTIATE(FLOATS, combine_expert_rows, Cuda)
TRIREME_INSTANTIATE(FLOATS, combine_expert_rows_backward, Cuda)

}  // namespace trireme::ops
