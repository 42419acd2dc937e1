#pragma once

#include <cstdint>

#include "ops/base/table.hpp"

namespace trireme::ops {

template <typename T>
struct SoftmaxKernels {
  // log(sum(exp(x))) of one row.
  T (*log_sum_exp)(const T* x, std::int64_t count);
  // The same in as many passes over x, with sum(class_weight * x); class_weight is 1 where it is null, `mass` its sum.
  T (*log_sum_exp_and_sum)(const T* x, const T* class_weight, double mass, std::int64_t count, double& sum);
  // y = scale * exp(x - log_sum_exp); y may be x.
  void (*softmax)(const T* x, T log_sum_exp, T scale, T* y, std::int64_t count);
  // y = scale * exp(x - log_sum_exp) - share * class_weight, which is 1 where it is null; y may be x.
  void (*smoothed_softmax)(const T* x, T log_sum_exp, T scale, T share, const T* class_weight, T* y, std::int64_t count);
  // sum(class_weight * x) of one row, likewise.
  double (*weighted_sum)(const T* x, const T* class_weight, std::int64_t count);
  // y = exp(x) / sum(exp(x)) and x - log(sum(exp(x))) of one row; y may be x.
  void (*probabilities)(const T* x, T* y, std::int64_t count);
  void (*log_probabilities)(const T* x, T* y, std::int64_t count);
  // dx = y * (dy - sum(y * dy)) of one row of results y.
  void (*softmax_backward)(const T* y, const T* dy, T* dx, std::int64_t count, bool accumulate);
  // dx = dy - exp(y) * sum(dy), likewise.
  void (*log_softmax_backward)(const T* y, const T* dy, T* dx, std::int64_t count, bool accumulate);
};

TRIREME_KERNEL_TABLE(KernelTable<SoftmaxKernels>, softmax_kernels)

}  // namespace trireme::ops
