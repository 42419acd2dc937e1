#include "ops/elementwise/parametric_kernels.hpp"

#include "ops/base/write.hpp"
#include "trireme/math/functors.hpp"

namespace trireme::ops::TRIREME_ISA {
namespace {

template <typename T>
void leaky_relu(const T* x, T slope, T* y, std::int64_t count) {
  const math::LeakyRelu<T> functor{slope};
  write(y, count, false, [=](std::int64_t i) { return functor.value(x[i]); });
}

template <typename T>
void leaky_relu_backward(const T* x, T slope, const T* dy, T* dx, std::int64_t count, bool accumulate) {
  const math::LeakyRelu<T> functor{slope};
  write(dx, count, accumulate, [=](std::int64_t i) { return dy[i] * functor.derivative(x[i]); });
}

template <typename T>
void softplus(const T* x, T beta, T threshold, T* y, std::int64_t count) {
  const math::Softplus<T> functor{beta, threshold};
  write(y, count, false, [=](std::int64_t i) { return functor.value(x[i]); });
}

template <typename T>
void softplus_backward(const T* x, T beta, T threshold, const T* dy, T* dx, std::int64_t count, bool accumulate) {
  const math::Softplus<T> functor{beta, threshold};
  write(dx, count, accumulate, [=](std::int64_t i) { return dy[i] * functor.derivative(x[i]); });
}

template <typename T>
constexpr ParametricKernels<T> kernels{leaky_relu<T>, leaky_relu_backward<T>, softplus<T>, softplus_backward<T>};

}  // namespace

const KernelTable<ParametricKernels> parametric_kernels{kernels<float>, kernels<double>};

}  // namespace trireme::ops::TRIREME_ISA
