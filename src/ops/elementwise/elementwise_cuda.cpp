#include "ops/elementwise/elementwise_cuda.hpp"

#include "device/cuda/check.hpp"
#include "device/cuda/stream.hpp"
#include "ops/elementwise/elementwise_on.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {

using device::check_cuda;
using device::native_stream;

template <>
template <typename T>
void Elementwise<Cuda>::activation(Activation kind, std::int64_t count, const T* x, T* y) {
  check_cuda(cuda::activation(kind, count, x, y, native_stream()), "activation");
}

template <>
template <typename T>
void Elementwise<Cuda>::activation_backward(Activation kind, std::int64_t count, const T* x, const T* dy, T* dx,
                                            bool accumulate) {
  check_cuda(cuda::activation_backward(kind, count, x, dy, dx, accumulate, native_stream()), "activation_backward");
}

template <>
template <typename T>
void Elementwise<Cuda>::gated(Activation kind, std::int64_t count, const T* gate, const T* x, T* y) {
  check_cuda(cuda::gated(kind, count, gate, x, y, false, native_stream()), "gated_activation");
}

template <>
template <typename T>
void Elementwise<Cuda>::gated_backward(Activation kind, std::int64_t count, const T* gate, const T* x, const T* dy, T* dgate,
                                       bool accumulate_gate, T* dx, bool accumulate) {
  constexpr auto op = "gated_activation_backward";
  if (dgate != nullptr) {
    check_cuda(cuda::gate_gradient(kind, count, gate, x, dy, dgate, accumulate_gate, native_stream()), op);
  }
  if (dx != nullptr) check_cuda(cuda::gated(kind, count, gate, dy, dx, accumulate, native_stream()), op);
}

template <>
template <typename T>
void Elementwise<Cuda>::add(std::int64_t count, const T* a, const T* b, T* c) {
  check_cuda(cuda::add(count, a, b, c, native_stream()), "add");
}

template <>
template <typename T>
void Elementwise<Cuda>::subtract(std::int64_t count, const T* a, const T* b, T* c) {
  check_cuda(cuda::subtract(count, a, b, c, native_stream()), "subtract");
}

template <>
template <typename T>
void Elementwise<Cuda>::multiply(std::int64_t count, const T* a, const T* b, T* c, bool accumulate) {
  check_cuda(cuda::multiply(count, a, b, c, accumulate, native_stream()), "multiply");
}

template <>
template <typename T>
void Elementwise<Cuda>::divide(std::int64_t count, const T* a, const T* b, T* c, bool accumulate) {
  check_cuda(cuda::divide(count, a, b, c, accumulate, native_stream()), "divide");
}

template <>
template <typename T>
void Elementwise<Cuda>::divide_backward_divisor(std::int64_t count, const T* a, const T* b, const T* dy, T* db,
                                                bool accumulate) {
  check_cuda(cuda::divide_backward_divisor(count, a, b, dy, db, accumulate, native_stream()), "divide_backward_divisor");
}

template <>
template <typename T>
void Elementwise<Cuda>::shift(std::int64_t count, const T* a, Accumulate<T> summand, T* c) {
  check_cuda(cuda::shift(count, a, summand, c, native_stream()), "shift");
}

template <>
template <typename T>
void Elementwise<Cuda>::scale(std::int64_t count, const T* a, Accumulate<T> factor, T* c, bool accumulate) {
  check_cuda(cuda::scale(count, a, factor, c, accumulate, native_stream()), "scale");
}

TRIREME_INSTANTIATE(FLOATS, activation, Cuda)
TRIREME_INSTANTIATE(FLOATS, activation_backward, Cuda)
TRIREME_INSTANTIATE(FLOATS, gated_activation, Cuda)
TRIREME_INSTANTIATE(FLOATS, gated_activation_backward, Cuda)
TRIREME_INSTANTIATE(FLOATS, add, Cuda)
TRIREME_INSTANTIATE(FLOATS, subtract, Cuda)
TRIREME_INSTANTIATE(FLOATS, multiply, Cuda)
TRIREME_INSTANTIATE(FLOATS, divide, Cuda)
TRIREME_INSTANTIATE(FLOATS, divide_backward_divisor, Cuda)
TRIREME_INSTANTIATE(FLOATS, shift, Cuda)
TRIREME_INSTANTIATE(FLOATS, scale, Cuda)

}  // namespace trireme::ops
