#pragma once

#include <cstdint>

#include "ops/base/table.hpp"

namespace trireme::ops {

enum class Activation : std::uint8_t;

// Loops over `count` contiguous elements; the output may be an input.
template <typename T>
struct ElementwiseKernels {
  void (*activation)(Activation kind, const T* x, T* y, std::int64_t count);
  void (*activation_backward)(Activation kind, const T* x, const T* dy, T* dx, std::int64_t count, bool accumulate);
  void (*gated)(Activation kind, const T* gate, const T* x, T* y, std::int64_t count);
  void (*gate_gradient)(Activation kind, const T* gate, const T* x, const T* dy, T* dgate, std::int64_t count, bool accumulate);
  void (*gated_gradient)(Activation kind, const T* gate, const T* dy, T* dx, std::int64_t count, bool accumulate);
  void (*add)(const T* a, const T* b, T* c, std::int64_t count);
  void (*subtract)(const T* a, const T* b, T* c, std::int64_t count);
  void (*multiply)(const T* a, const T* b, T* c, std::int64_t count, bool accumulate);
  void (*divide)(const T* a, const T* b, T* c, std::int64_t count, bool accumulate);
  void (*divide_backward_divisor)(const T* a, const T* b, const T* dy, T* db, std::int64_t count, bool accumulate);
  void (*shift)(const T* a, T summand, T* c, std::int64_t count);
  void (*scale)(const T* a, T factor, T* c, std::int64_t count, bool accumulate);
};

TRIREME_KERNEL_TABLE(KernelTable<ElementwiseKernels>, elementwise_kernels)

}  // namespace trireme::ops
