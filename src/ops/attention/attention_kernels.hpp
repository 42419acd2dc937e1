#pragma once

#include <cstdint>
#include <type_traits>

#include "ops/base/table.hpp"
#include "ops/reduce/exponentials.hpp"

namespace trireme::ops {

// Keys [keys, size] and values [keys, value_size] of one head of one sequence, and the queries of the `group` heads that share
// them, [queries, size] each: the queries of head g begin at element g * size of a row, its output at g * value_size.
template <typename T>
struct AttentionHead {
  const T* q;
  const T* k;
  const T* v;
  std::int64_t q_stride;  // elements from row to row
  std::int64_t k_stride;
  std::int64_t v_stride;
  std::int64_t queries;
  std::int64_t keys;
  std::int64_t size;
  std::int64_t value_size;
  std::int64_t group;
  T scale;
  bool causal;                               // query i sees the keys up to i + keys - queries, else all
  const std::int32_t* hidden;                // [keys], not 0 where no query sees the key; may be null
  const std::int32_t* first_keys = nullptr;  // [queries], the first key that each query sees, not decreasing; may be null
  std::int64_t window = 0;                   // above 0, if causal: a query sees only the last `window` keys up to its last one
};

// For each query of a head: the largest scale * score and the sum of exp(scale * score - largest), both 0 if no key is seen. T
// may be const.
template <typename T>
struct AttentionSums {
  T* largest;
  T* sum;

  AttentionSums from(std::int64_t query) const { return {largest + query, sum + query}; }
  Exponentials<std::remove_const_t<T>> at(std::int64_t query) const { return {largest[query], sum[query]}; }
  void keep(std::int64_t query, T of_largest, T of_sum) const {
    largest[query] = of_sum == T(0) ? T(0) : of_largest;
    sum[query] = of_sum;
  }
};

template <typename T>
struct AttentionHeadGradients {
  const T* out;  // rows out_stride apart, as dout
  const T* dout;
  std::int64_t out_stride;
  AttentionSums<const T> sums;  // [group, queries]
  T* dq;                        // rows q_stride apart
  T* dk;                        // rows k_stride apart
  T* dv;                        // rows v_stride apart
};

template <typename T>
struct AttentionKernels {
  // Elements of each thread's workspace.
  std::int64_t (*workspace)(std::int64_t queries, std::int64_t keys, std::int64_t size, std::int64_t value_size);
  void (*forward)(const AttentionHead<T>& head, T* out, std::int64_t out_stride, const AttentionSums<T>& sums, T* workspace);
  void (*backward)(const AttentionHead<T>& head, const AttentionHeadGradients<T>& gradients, T* workspace);
};

TRIREME_KERNEL_TABLE(KernelTable<AttentionKernels>, attention_kernels)

}  // namespace trireme::ops
