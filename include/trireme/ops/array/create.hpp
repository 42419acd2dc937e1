#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <type_traits>

#include "trireme/core/error.hpp"
#include "trireme/core/export.hpp"
#include "trireme/ops/array/line.hpp"
#include "trireme/tensor/tensor.hpp"

// New tensors: arange<float>(0, 6, 2) is [0, 2, 4]. D: Cpu unless said.
namespace trireme TRIREME_EXPORT {
namespace ops {

// y[i] of a Line.
template <typename T, typename D>
TRIREME_EXPORT void fill_line(const Line& line, Tensor<T, D>& y);

std::int64_t arange_count(double begin, double end, double step);
Line linspace_line(double begin, double end, std::int64_t count);

// y[i, i] = 1, all else 0.
template <typename T, typename D>
TRIREME_EXPORT void fill_eye(Tensor<T, D>& y);

}  // namespace ops

// begin, begin + step, ... to before `end`; rounded to T from double. step is not 0. T: float, double, bfloat16, float16,
// std::int32_t, std::int64_t, whole numbers exact up to 2^53.
template <typename T, typename D = Cpu>
Tensor<T, D> arange(double begin, double end, double step = 1) {
  Tensor<T, D> y({ops::arange_count(begin, end, step)});
  ops::fill_line({.first = begin, .step = step}, y);
  return y;
}
template <typename T, typename D = Cpu>
Tensor<T, D> arange(double end) {
  return arange<T, D>(0, end);
}
template <typename T, typename D = Cpu>
Tensor<T, D> arange(std::integral auto end) {
  return arange<T, D>(0, static_cast<double>(end));
}

// `count` numbers from begin to end, both included.
template <typename T, typename D = Cpu>
Tensor<T, D> linspace(double begin, double end, std::int64_t count) {
  Tensor<T, D> y({count});
  ops::fill_line(ops::linspace_line(begin, end, count), y);
  return y;
}

// [rows, columns] with ones where the row is the column; square unless said.
template <typename T, typename D = Cpu>
Tensor<T, D> eye(std::int64_t rows, std::optional<std::int64_t> columns = {}) {
  Tensor<T, D> y({rows, columns.value_or(rows)});
  ops::fill_eye(y);
  return y;
}

// Of the shape, type and device of x.
template <typename T, typename D>
Tensor<T, D> full_like(const Tensor<T, D>& x, std::type_identity_t<T> value) {
  require(x.defined(), "full_like: x is undefined");
  return Tensor<T, D>::full(x.shape(), value);
}
template <typename T, typename D>
Tensor<T, D> zeros_like(const Tensor<T, D>& x) {
  return full_like(x, T{});
}
template <typename T, typename D>
Tensor<T, D> ones_like(const Tensor<T, D>& x) {
  return full_like(x, static_cast<T>(1.0f));
}

}  // namespace trireme
