#pragma once

#include <cstdint>

#include "ops/base/table.hpp"
#include "ops/reduce/exponentials.hpp"

namespace trireme::ops {

template <typename T>
struct SoftmaxKernels {
  // For one row.
  Exponentials<T> (*exponentials)(const T* x, std::int64_t count);
  // The same, with no more passes over x, and also sum(class_weight * (x - largest)). A null class_weight stands for 1.
  Exponentials<T> (*exponentials_and_sum)(const T* x, const T* class_weight, std::int64_t count, double& sum);
  // y = scale * exp(x - largest); y may be x.
  void (*softmax)(const T* x, T largest, T scale, T* y, std::int64_t count);
  // y = scale * exp(x - largest) - share * class_weight. A null class_weight stands for 1; y may be x.
  void (*smoothed_softmax)(const T* x, T largest, T scale, T share, const T* class_weight, T* y, std::int64_t count);
  // sum(class_weight * (x - largest)) of one row, likewise.
  double (*weighted_sum)(const T* x, T largest, const T* class_weight, std::int64_t count);
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
