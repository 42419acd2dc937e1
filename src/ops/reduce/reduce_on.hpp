#pragma once

#include "ops/base/check.hpp"
#include "trireme/ops/reduce/reduce.hpp"

// The operations of ops/reduce/reduce.hpp for any device: Reduce<D> does the work.
namespace trireme::ops {

template <typename D>
struct Reduce {
  template <typename T>
  static void sum_rows(const T* x, std::int64_t rows, std::int64_t width, Accumulate<T>* columns, bool accumulate);
  template <typename T>
  static Scalar<double, D> sum_of_squares(const T* x, std::int64_t count);
};

template <typename T, typename D>
void sum_rows(const Tensor<T, D>& x, Tensor<Accumulate<T>, D>& columns, bool accumulate) {
  require_defined("sum_rows", "x", x);
  const std::int64_t width = x.shape().back();
  require_count("sum_rows", "columns", columns, width);
  Reduce<D>::sum_rows(x.data(), x.shape().rows(), width, columns.data(), accumulate);
}

template <typename T, typename D>
Scalar<double, D> sum_of_squares(const T* x, std::size_t count, D) {
  return Reduce<D>::sum_of_squares(x, static_cast<std::int64_t>(count));
}

}  // namespace trireme::ops
