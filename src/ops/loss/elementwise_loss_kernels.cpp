#include "ops/loss/elementwise_loss_kernels.hpp"

#include "ops/base/vector.hpp"
#include "ops/base/write.hpp"
#include "ops/loss/elementwise_loss_body.hpp"

namespace trireme::ops::TRIREME_ISA {
namespace {

template <typename T>
double sum(const ElementwiseLossOf<T>& loss, const T* x, const T* target, std::int64_t count) {
  double total = 0;
  with_loss(loss, [&total, x, target, count](auto functor) {
    total = sum_of<double>(count, [=](std::int64_t i) { return static_cast<double>(functor.value(x[i], target[i])); });
  });
  return total;
}

template <typename T>
void backward(const ElementwiseLossOf<T>& loss, const T* x, const T* target, T scale, T* dx, std::int64_t count,
              bool accumulate) {
  with_loss(loss, [=](auto functor) {
    write(dx, count, accumulate, [=](std::int64_t i) { return scale * functor.derivative(x[i], target[i]); });
  });
}

template <typename T>
constexpr ElementwiseLossKernels<T> kernels{sum<T>, backward<T>};

}  // namespace

const KernelTable<ElementwiseLossKernels> elementwise_loss_kernels{kernels<float>, kernels<double>};

}  // namespace trireme::ops::TRIREME_ISA
