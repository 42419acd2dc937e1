#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

#include "trireme/core/error.hpp"
#include "trireme/core/export.hpp"
#include "trireme/ops/array/line.hpp"
#include "trireme/tensor/tensor.hpp"

// New tensors: arange<float>(0, 6, 2) is [0, 2, 4]. D is Cpu by default.
namespace trireme TRIREME_EXPORT {

// The source of random elements. Each element depends only on the seed, the stream and the element's number. So a rank that
// asks for the elements from `first` on gets the same values as a single process.
struct RandomElements {
  std::uint64_t seed = 0;
  std::string_view stream = {};  // a name; streams of different names are independent
  std::int64_t first = 0;        // the number of the tensor's first element
};

namespace ops {

enum class RandomKind : std::uint8_t { uniform, normal, whole };

// y[i] is random element number first + i: uniform in [a, b), normal with mean a and standard deviation b, or an integer in [a,
// b).
template <typename T>
TRIREME_EXPORT void fill_random(RandomKind kind, const RandomElements& of, double a, double b, Tensor<T, Cpu>& y);

// y[i] is number i of the line.
template <typename T, typename D>
TRIREME_EXPORT void fill_line(const Line& line, Tensor<T, D>& y);

std::int64_t arange_count(double begin, double end, double step);
Line linspace_line(double begin, double end, std::int64_t count);

// y[i, i] = 1, all else 0.
template <typename T, typename D>
TRIREME_EXPORT void fill_eye(Tensor<T, D>& y);

}  // namespace ops

// begin, begin + step, ... up to but not including `end`, computed in double and rounded to T. step must not be 0. T: float,
// double, bfloat16, float16, std::int32_t, std::int64_t; integers are exact up to 2^53.
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

// [rows, columns] with ones on the main diagonal and zeros elsewhere; square by default.
template <typename T, typename D = Cpu>
Tensor<T, D> eye(std::int64_t rows, std::optional<std::int64_t> columns = {}) {
  Tensor<T, D> y({rows, columns.value_or(rows)});
  ops::fill_eye(y);
  return y;
}

namespace detail {

template <typename T, typename D>
Tensor<T, D> random(ops::RandomKind kind, const Shape& shape, const RandomElements& of, double a, double b) {
  Tensor<T, Cpu> y(shape);
  ops::fill_random(kind, of, a, b, y);
  if constexpr (Tensor<T, D>::on_host) {
    return y;
  } else {
    return y.template to<D>();
  }
}

}  // namespace detail

// Tensors of random elements. The host makes the elements; a GPU gets a copy. random_uniform<float>({8, 4}, {.seed = 1, .stream
// = "noise", .first = 32 * step}) gives a different tensor in each step, and the same tensors in each run. T: float, double,
// bfloat16, float16.
template <typename T, typename D = Cpu>
Tensor<T, D> random_uniform(const Shape& shape, const RandomElements& of, double low = 0, double high = 1) {  // in [low, high)
  return detail::random<T, D>(ops::RandomKind::uniform, shape, of, low, high);
}
template <typename T, typename D = Cpu>
Tensor<T, D> random_normal(const Shape& shape, const RandomElements& of, double mean = 0, double deviation = 1) {
  return detail::random<T, D>(ops::RandomKind::normal, shape, of, mean, deviation);
}
// Integers in [low, high); high - low is at most 2^53. T: std::int32_t, std::int64_t.
template <typename T, typename D = Cpu>
Tensor<T, D> random_integers(const Shape& shape, const RandomElements& of, T low, std::type_identity_t<T> high) {
  return detail::random<T, D>(ops::RandomKind::whole, shape, of, static_cast<double>(low), static_cast<double>(high));
}

// Tensors with the shape, type and device of x.
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
