#include "ops/kernels/elementwise_loss.hpp"

#include "ops/bodies/elementwise_loss.hpp"
#include "ops/kernels/vector.hpp"
#include "ops/kernels/write.hpp"

namespace trireme::ops::TRIREME_ISA {
namespace {

template <typename T>
double sum(ElementwiseLoss kind, const T* x, const T* target, T positive_weight, std::int64_t count) {
  double total = 0;
  with_loss(kind, positive_weight, [&total, x, target, count](auto functor) {
    total = sum_of<double>(count, [=](std::int64_t i) { return static_cast<double>(functor.value(x[i], target[i])); });
  });
  return total;
}

template <typename T>
void backward(ElementwiseLoss kind, const T* x, const T* target, T positive_weight, T scale, T* dx, std::int64_t count,
              bool accumulate) {
  with_loss(kind, positive_weight, [=](auto functor) {
    write(dx, count, accumulate, [=](std::int64_t i) { return scale * functor.derivative(x[i], target[i]); });
  });
}

template <typename T>
constexpr ElementwiseLossKernels<T> kernels{sum<T>, backward<T>};

}  // namespace

const KernelTable<ElementwiseLossKernels> elementwise_loss_kernels{kernels<float>, kernels<double>};

}  // namespace trireme::ops::TRIREME_ISA
