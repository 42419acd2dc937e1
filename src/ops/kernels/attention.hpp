#pragma once

#include <cstdint>

#include "ops/kernels/table.hpp"

namespace trireme::ops {

// Queries, keys and values of one head of one sequence: [time, size] each, rows `stride` elements apart.
template <typename T>
struct AttentionHead {
  const T* q;
  const T* k;
  const T* v;
  std::int64_t stride;
  std::int64_t time;
  std::int64_t size;
};

template <typename T>
struct AttentionHeadGradients {
  const T* out;  // rows out_stride apart, as dout
  const T* dout;
  std::int64_t out_stride;
  const T* log_sum_exp;  // [time]
  T* dq;                 // rows head.stride apart, as dk and dv
  T* dk;
  T* dv;
};

template <typename T>
struct AttentionKernels {
  std::int64_t (*workspace)(std::int64_t time, std::int64_t size);  // elements, for each thread
  void (*forward)(const AttentionHead<T>& head, T* out, std::int64_t out_stride, T* log_sum_exp, T* workspace);
  void (*backward)(const AttentionHead<T>& head, const AttentionHeadGradients<T>& gradients, T* workspace);
};

TRIREME_KERNEL_TABLE(KernelTable<AttentionKernels>, attention_kernels)

}  // namespace trireme::ops
