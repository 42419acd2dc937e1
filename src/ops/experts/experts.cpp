#include <algorithm>
#include <cstring>

#include "ops/elementwise/floats.hpp"
#include "ops/experts/experts_on.hpp"
#include "precision/instantiate.hpp"
#include "trireme/ops/matmul/matmul.hpp"

namespace trireme::ops {
namespace {

// Calls body(expert, first row, number of rows) for experts with rows.
void each_expert(const ExpertRows& rows, const auto& body) {
  for (std::int64_t expert = 0; expert < rows.experts(); ++expert) {
    const std::int64_t first = rows.first[static_cast<std::size_t>(expert)];
    const std::int64_t count = rows.first[static_cast<std::size_t>(expert + 1)] - first;
    if (count > 0) body(expert, first, count);
  }
}

// Calls body(place, row) for each choice of a token that has a row.
void each_row_of(const ExpertRows& rows, std::int64_t token, const auto& body) {
  for (std::int64_t place = token * rows.choices; place < (token + 1) * rows.choices; ++place) {
    const std::int64_t row = rows.row[static_cast<std::size_t>(place)];
    if (row >= 0) body(place, row);
  }
}

template <typename A>
void add_scaled(const A* x, A factor, A* sum, std::int64_t count) {
#pragma omp simd
  for (std::int64_t i = 0; i < count; ++i) sum[i] += factor * x[i];
}

template <typename A>
A product_of(const A* a, const A* b, std::int64_t count) {
  A sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

// y[token] = the sum of factor(place) * x[row] over the token's rows, or += with `accumulate`.
template <typename T>
void sum_rows_of_tokens(const ExpertRows& rows, const T* x, std::int64_t width, T* y, bool accumulate, const auto& factor) {
  using A = Accumulate<T>;
  parallel_rows(rows.tokens, width * rows.choices, [&](std::int64_t begin, std::int64_t end) {
    FloatRow<T> from(width), to(width);
    for (std::int64_t token = begin; token < end; ++token) {
      T* out = y + token * width;
      if (accumulate) to.read(out);
      A* sum = to.place(out);
      if (!accumulate) std::fill_n(sum, width, A(0));
      each_row_of(rows, token, [&](std::int64_t place, std::int64_t row) {
        add_scaled(from.read(x + row * width), factor(place), sum, width);
      });
      to.write(out);
    }
  });
}

}  // namespace

template <>
template <typename T>
void ExpertWork<Cpu>::take(const ExpertRows& rows, const Tensor<T, Cpu>& x, Tensor<T, Cpu>& y) {
  const std::int64_t width = x.dim(1);
  parallel_rows(rows.count(), width, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::int64_t token = rows.choice[static_cast<std::size_t>(row)] / rows.choices;
      std::memcpy(y.data() + row * width, x.data() + token * width, static_cast<std::size_t>(width) * sizeof(T));
    }
  });
}

template <>
template <typename T>
void ExpertWork<Cpu>::take_backward(const ExpertRows& rows, const Tensor<T, Cpu>& dy, Tensor<T, Cpu>& dx, bool accumulate) {
  sum_rows_of_tokens(rows, dy.data(), dy.dim(1), dx.data(), accumulate, [](std::int64_t) { return Accumulate<T>(1); });
}

template <>
template <typename T>
void ExpertWork<Cpu>::linear(const ExpertRows& rows, const Tensor<T, Cpu>& x, const Tensor<T, Cpu>& weight, Tensor<T, Cpu>& y) {
  const std::int64_t out = y.dim(1);
  each_expert(rows, [&](std::int64_t expert, std::int64_t first, std::int64_t count) {
    Tensor<T, Cpu> of_expert = y.narrow(first, count);
    matmul(x.narrow(first, count), weight.narrow(expert * out, out), of_expert, {.transpose_b = true});
  });
}

template <>
template <typename T>
void ExpertWork<Cpu>::input_gradient(const ExpertRows& rows, const Tensor<T, Cpu>& dy, const Tensor<T, Cpu>& weight,
                                     Tensor<T, Cpu>& dx, bool accumulate) {
  const std::int64_t out = dy.dim(1);
  each_expert(rows, [&](std::int64_t expert, std::int64_t first, std::int64_t count) {
    Tensor<T, Cpu> of_expert = dx.narrow(first, count);
    matmul(dy.narrow(first, count), weight.narrow(expert * out, out), of_expert, {.accumulate = accumulate});
  });
}

template <>
template <typename T>
void ExpertWork<Cpu>::weight_gradient(const ExpertRows& rows, const Tensor<T, Cpu>& dy, const Tensor<T, Cpu>& x,
                                      Tensor<Accumulate<T>, Cpu>& dweight, bool accumulate) {
  const std::int64_t out = dy.dim(1);
  for (std::int64_t expert = 0; expert < rows.experts(); ++expert) {  // also those without rows
    const std::int64_t first = rows.first[static_cast<std::size_t>(expert)];
    const std::int64_t count = rows.first[static_cast<std::size_t>(expert + 1)] - first;
    Tensor<Accumulate<T>, Cpu> of_expert = dweight.narrow(expert * out, out);
    matmul(dy.narrow(first, count), x.narrow(first, count), of_expert, {.transpose_a = true, .accumulate = accumulate});
  }
}

template <>
template <typename T>
void ExpertWork<Cpu>::combine(const ExpertRows& rows, const Tensor<T, Cpu>& x, const Tensor<Accumulate<T>, Cpu>& weights,
                              Tensor<T, Cpu>& y) {
  sum_rows_of_tokens(rows, x.data(), x.dim(1), y.data(), false, [&](std::int64_t place) { return weights.data()[place]; });
}

template <>
template <typename T>
void ExpertWork<Cpu>::combine_backward(const ExpertRows& rows, const Tensor<T, Cpu>& dy, const Tensor<T, Cpu>& x,
                                       const Tensor<Accumulate<T>, Cpu>& weights, Tensor<T, Cpu>& dx,
                                       Tensor<Accumulate<T>, Cpu>& dweights) {
  using A = Accumulate<T>;
  const std::int64_t width = x.dim(1);
  parallel_rows(rows.tokens, width * rows.choices, [&](std::int64_t begin, std::int64_t end) {
    FloatRow<T> upstream(width), from(width), to(width);
    for (std::int64_t token = begin; token < end; ++token) {
      const A* gradient = upstream.read(dy.data() + token * width);
      if (dweights.defined()) std::fill_n(dweights.data() + token * rows.choices, rows.choices, A(0));
      each_row_of(rows, token, [&](std::int64_t place, std::int64_t row) {
        if (dweights.defined()) dweights.data()[place] = product_of(from.read(x.data() + row * width), gradient, width);
        if (!dx.defined()) return;
        const A weight = weights.data()[place];
        T* const out = dx.data() + row * width;
        A* const scaled = to.place(out);
#pragma omp simd
        for (std::int64_t i = 0; i < width; ++i) scaled[i] = weight * gradient[i];
        to.write(out);
      });
    }
  });
}

TRIREME_INSTANTIATE(FLOATS, take_expert_rows, Cpu)
TRIREME_INSTANTIATE(FLOATS, take_expert_rows_backward, Cpu)
TRIREME_INSTANTIATE(FLOATS, expert_linear, Cpu)
TRIREME_INSTANTIATE(FLOATS, expert_linear_input_gradient, Cpu)
TRIREME_INSTANTIATE(FLOATS, expert_linear_weight_gradient, Cpu)
TRIREME_INSTANTIATE(FLOATS, combine_expert_rows, Cpu)
TRIREME_INSTANTIATE(FLOATS, combine_expert_rows_backward, Cpu)

}  // namespace trireme::ops
