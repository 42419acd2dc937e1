#include "ops/kernels/elementwise_loss.hpp"

#include "ops/kernels/vector.hpp"
#include "ops/kernels/write.hpp"
#include "trireme/math/functors.hpp"
#include "trireme/ops/elementwise_loss.hpp"

namespace trireme::ops::TRIREME_ISA {
namespace {

template <typename T, typename Visit>
TRIREME_HOST_DEVICE void with_functor(ElementwiseLoss kind, T positive_weight, Visit visit) {
  switch (kind) {
    case ElementwiseLoss::squared_error: return visit(math::SquaredError{});
    case ElementwiseLoss::binary_cross_entropy: return visit(math::BinaryCrossEntropy<T>{positive_weight});
    case ElementwiseLoss::kl_divergence: return visit(math::KlDivergence{});
    case ElementwiseLoss::kl_divergence_log_target: return visit(math::KlDivergenceLogTarget{});
  }
}

template <typename T>
double sum(ElementwiseLoss kind, const T* x, const T* target, T positive_weight, std::int64_t count) {
  double total = 0;
  with_functor(kind, positive_weight, [&total, x, target, count](auto functor) {
    total = sum_of<double>(count, [=](std::int64_t i) { return static_cast<double>(functor.value(x[i], target[i])); });
  });
  return total;
}

template <typename T>
void backward(ElementwiseLoss kind, const T* x, const T* target, T positive_weight, T scale, T* dx, std::int64_t count,
              bool accumulate) {
  with_functor(kind, positive_weight, [=](auto functor) {
    write(dx, count, accumulate, [=](std::int64_t i) { return scale * functor.derivative(x[i], target[i]); });
  });
}

template <typename T>
constexpr ElementwiseLossKernels<T> kernels{sum<T>, backward<T>};

}  // namespace

const KernelTable<ElementwiseLossKernels> elementwise_loss_kernels{kernels<float>, kernels<double>};

}  // namespace trireme::ops::TRIREME_ISA
