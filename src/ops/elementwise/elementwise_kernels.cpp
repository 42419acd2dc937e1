#include "ops/elementwise/elementwise_kernels.hpp"

#include "ops/base/write.hpp"
#include "ops/elementwise/elementwise_body.hpp"

namespace trireme::ops::TRIREME_ISA {
namespace {

template <typename T>
void activation(Activation kind, const T* x, T* y, std::int64_t count) {
  with_functor(kind, [=](auto functor) { write(y, count, false, [=](std::int64_t i) { return functor.value(x[i]); }); });
}

template <typename T>
void activation_backward(Activation kind, const T* x, const T* dy, T* dx, std::int64_t count, bool accumulate) {
  with_functor(kind, [=](auto functor) {
    write(dx, count, accumulate, [=](std::int64_t i) { return dy[i] * functor.derivative(x[i]); });
  });
}

template <typename T>
void gated(Activation kind, const T* gate, const T* x, T* y, std::int64_t count) {
  with_functor(kind,
               [=](auto functor) { write(y, count, false, [=](std::int64_t i) { return Gated{functor}(i, gate[i], x[i]); }); });
}

template <typename T>
void gate_gradient(Activation kind, const T* gate, const T* x, const T* dy, T* dgate, std::int64_t count, bool accumulate) {
  with_functor(kind, [=](auto functor) {
    write(dgate, count, accumulate, [=](std::int64_t i) { return GateGradient{functor}(i, gate[i], x[i], dy[i]); });
  });
}

template <typename T>
void gated_gradient(Activation kind, const T* gate, const T* dy, T* dx, std::int64_t count, bool accumulate) {
  with_functor(kind, [=](auto functor) {
    write(dx, count, accumulate, [=](std::int64_t i) { return Gated{functor}(i, gate[i], dy[i]); });
  });
}

template <typename T>
void add(const T* a, const T* b, T* c, std::int64_t count) {
  write(c, count, false, [=](std::int64_t i) { return a[i] + b[i]; });
}

template <typename T>
void subtract(const T* a, const T* b, T* c, std::int64_t count) {
  write(c, count, false, [=](std::int64_t i) { return a[i] - b[i]; });
}

template <typename T>
void multiply(const T* a, const T* b, T* c, std::int64_t count, bool accumulate) {
  write(c, count, accumulate, [=](std::int64_t i) { return a[i] * b[i]; });
}

template <typename T>
void divide(const T* a, const T* b, T* c, std::int64_t count, bool accumulate) {
  write(c, count, accumulate, [=](std::int64_t i) { return a[i] / b[i]; });
}

template <typename T>
void divide_backward_divisor(const T* a, const T* b, const T* dy, T* db, std::int64_t count, bool accumulate) {
  write(db, count, accumulate, [=](std::int64_t i) { return QuotientSlope{}(i, a[i], b[i], dy[i]); });
}

template <typename T>
void shift(const T* a, T summand, T* c, std::int64_t count) {
  write(c, count, false, [=](std::int64_t i) { return a[i] + summand; });
}

template <typename T>
void scale(const T* a, T factor, T* c, std::int64_t count, bool accumulate) {
  write(c, count, accumulate, [=](std::int64_t i) { return factor * a[i]; });
}

template <typename T>
constexpr ElementwiseKernels<T> kernels{
    activation<T>, activation_backward<T>,     gated<T>, gate_gradient<T>, gated_gradient<T>, add<T>, subtract<T>, multiply<T>,
    divide<T>,     divide_backward_divisor<T>, shift<T>, scale<T>};

}  // namespace

const KernelTable<ElementwiseKernels> elementwise_kernels{kernels<float>, kernels<double>};

}  // namespace trireme::ops::TRIREME_ISA
