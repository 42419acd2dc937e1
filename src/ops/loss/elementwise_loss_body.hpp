#pragma once

#include <cstdint>

#include "device/cuda/team.hpp"
#include "ops/base/convert.hpp"
#include "ops/base/scalar_argument.hpp"
#include "ops/loss/elementwise_loss_of.hpp"
#include "trireme/math/functors.hpp"

// The losses of ops/loss/elementwise_loss.hpp.
namespace trireme::ops {

template <typename A, typename Visit>
TRIREME_HOST_DEVICE auto with_loss(const ElementwiseLossOf<A>& of, Visit visit) {
  switch (of.kind) {
    case ElementwiseLoss::squared_error: return visit(math::SquaredError{});
    case ElementwiseLoss::binary_cross_entropy: return visit(math::BinaryCrossEntropy<A>{of.first});
    case ElementwiseLoss::kl_divergence: return visit(math::KlDivergence{});
    case ElementwiseLoss::kl_divergence_log_target: return visit(math::KlDivergenceLogTarget{});
    case ElementwiseLoss::absolute_error: return visit(math::AbsoluteError{});
    case ElementwiseLoss::huber: return visit(math::Huber<A>{of.first});
    case ElementwiseLoss::smooth_l1: return visit(math::SmoothL1<A>{of.first});
    case ElementwiseLoss::focal: break;
  }
  return visit(math::Focal<A>{of.first, of.second});
}

// sums[part] = the losses of every `parts`-th run of team.size() elements, in double.
template <typename T, typename Loss>
struct SumLosses {
  Loss loss;
  const T* x;
  const Accumulate<T>* target;
  std::int64_t count;
  std::int64_t parts;
  double* sums;

  template <typename Team>
  TRIREME_TEAM void operator()(const Team& team, std::int64_t part) const {
    const std::int64_t threads = parts * team.size();
    double sum = 0;
    for (std::int64_t i = part * team.size() + team.rank(); i < count; i += threads) {
      sum += static_cast<double>(loss.value(widened(x[i]), target[i]));
    }
    sum = team.sum(sum);
    if (team.rank() == 0) sums[part] = sum;
  }
};

// As a map (ops/base/map.cuh): scale times the derivative.
template <typename A, typename Loss>
struct LossGradient {
  Loss loss;
  ScalarArgument<A> scale;
  TRIREME_HOST_DEVICE A operator()(std::int64_t, A x, A target) const { return scale.get() * loss.derivative(x, target); }
};

}  // namespace trireme::ops
