#include "ops/base/map.cuh"
#include "ops/elementwise/elementwise_body.hpp"
#include "ops/elementwise/elementwise_cuda.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops::cuda {

template <typename T>
cudaError_t activation(Activation kind, std::int64_t count, const T* x, T* y, cudaStream_t stream) {
  return with_functor(kind, [=](auto functor) { return map_elements(count, y, false, stream, Value{functor}, x); });
}

template <typename T>
cudaError_t activation_backward(Activation kind, std::int64_t count, const T* x, const T* dy, T* dx, bool accumulate,
                                cudaStream_t stream) {
  return with_functor(kind,
                      [=](auto functor) { return map_elements(count, dx, accumulate, stream, Derivative{functor}, x, dy); });
}

template <typename T>
cudaError_t gated(Activation kind, std::int64_t count, const T* gate, const T* x, T* y, bool accumulate, cudaStream_t stream) {
  return with_functor(kind, [=](auto functor) { return map_elements(count, y, accumulate, stream, Gated{functor}, gate, x); });
}

template <typename T>
cudaError_t gate_gradient(Activation kind, std::int64_t count, const T* gate, const T* x, const T* dy, T* dgate,
                          bool accumulate, cudaStream_t stream) {
  return with_functor(
      kind, [=](auto functor) { return map_elements(count, dgate, accumulate, stream, GateGradient{functor}, gate, x, dy); });
}

template <typename T>
cudaError_t add(std::int64_t count, const T* a, const T* b, T* c, cudaStream_t stream) {
  return map_elements(count, c, false, stream, Sum{}, a, b);
}

template <typename T>
cudaError_t subtract(std::int64_t count, const T* a, const T* b, T* c, cudaStream_t stream) {
  return map_elements(count, c, false, stream, Difference{}, a, b);
}

template <typename T>
cudaError_t multiply(std::int64_t count, const T* a, const T* b, T* c, bool accumulate, cudaStream_t stream) {
  return map_elements(count, c, accumulate, stream, Product{}, a, b);
}

template <typename T>
cudaError_t divide(std::int64_t count, const T* a, const T* b, T* c, bool accumulate, cudaStream_t stream) {
  return map_elements(count, c, accumulate, stream, Quotient{}, a, b);
}

template <typename T>
cudaError_t divide_backward_divisor(std::int64_t count, const T* a, const T* b, const T* dy, T* db, bool accumulate,
                                    cudaStream_t stream) {
  return map_elements(count, db, accumulate, stream, QuotientSlope{}, a, b, dy);
}

template <typename T>
cudaError_t shift(std::int64_t count, const T* a, Accumulate<T> summand, T* c, cudaStream_t stream) {
  return map_elements(count, c, false, stream, Shifted<Accumulate<T>>{summand}, a);
}

template <typename T>
cudaError_t scale(std::int64_t count, const T* a, Accumulate<T> factor, T* c, bool accumulate, cudaStream_t stream) {
  return map_elements(count, c, accumulate, stream, Scaled<Accumulate<T>>{factor}, a);
}

TRIREME_INSTANTIATE(FLOATS, activation)
TRIREME_INSTANTIATE(FLOATS, activation_backward)
TRIREME_INSTANTIATE(FLOATS, gated)
TRIREME_INSTANTIATE(FLOATS, gate_gradient)
TRIREME_INSTANTIATE(FLOATS, add)
TRIREME_INSTANTIATE(FLOATS, subtract)
TRIREME_INSTANTIATE(FLOATS, multiply)
TRIREME_INSTANTIATE(FLOATS, divide)
TRIREME_INSTANTIATE(FLOATS, divide_backward_divisor)
TRIREME_INSTANTIATE(FLOATS, shift)
TRIREME_INSTANTIATE(FLOATS, scale)

}  // namespace trireme::ops::cuda
