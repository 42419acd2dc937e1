#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "ops/array/arranged_copy.hpp"
#include "ops/base/parallel.hpp"
#include "trireme/core/dtype.hpp"

// The sums of ops/array/copy_strided.hpp on the CPU. One thread sums an element of y, in an order that depends on the box
// alone.
namespace trireme::ops {

// The type of sums: their errors stay below those of rounding to T.
template <typename T>
using StridedSum = std::conditional_t<std::is_integral_v<T>, std::int64_t, double>;

// Calls visit(offset in x, offset in y) for `count` places of dims[size], the last dim fastest, from place number `begin` on.
template <typename Visit>
void each_place(const StridedCopy::Dim* dims, int size, std::int64_t begin, std::int64_t count, const Visit& visit) {
  if (count == 0) return;
  std::int64_t at[StridedCopy::max_dims] = {};
  std::int64_t from = 0;
  std::int64_t to = 0;
  for (int i = size - 1; i >= 0; --i) {
    at[i] = begin % dims[i].extent;
    begin /= dims[i].extent;
    from += at[i] * dims[i].from;
    to += at[i] * dims[i].to;
  }
  for (std::int64_t number = 0; number < count; ++number) {
    visit(from, to);
    for (int i = size - 1; i >= 0; --i) {
      from += dims[i].from;
      to += dims[i].to;
      if (++at[i] < dims[i].extent) break;
      from -= at[i] * dims[i].from;
      to -= at[i] * dims[i].to;
      at[i] = 0;
    }
  }
}

template <typename T>
StridedSum<T> sum_of_strided(const T* x, std::int64_t stride, std::int64_t count) {
  constexpr int lanes = 8;
  StridedSum<T> sums[lanes] = {};
  std::int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    for (int lane = 0; lane < lanes; ++lane) {
      sums[lane] += static_cast<StridedSum<T>>(static_cast<Accumulate<T>>(x[(i + lane) * stride]));
    }
  }
  for (int lane = 0; i < count; ++i, ++lane)
    sums[lane] += static_cast<StridedSum<T>>(static_cast<Accumulate<T>>(x[i * stride]));
  for (int half = lanes / 2; half > 0; half /= 2) {
    for (int lane = 0; lane < half; ++lane) sums[lane] += sums[lane + half];
  }
  return sums[0];
}

template <typename T>
void sum_box(const ArrangedCopy& copy, const T* x, T* y, bool accumulate) {
  using Sum = StridedSum<T>;
  constexpr std::int64_t most_columns = 256;
  const StridedCopy::Dim columns = copy.kept == 0 ? StridedCopy::Dim{} : copy.dims[copy.kept - 1];
  const StridedCopy::Dim* summed = copy.dims + copy.kept;
  // Inner loops run along the last summed dim or along the last dim of y, whichever has the smaller stride in x.
  const StridedCopy::Dim along = copy.summed == 0 ? StridedCopy::Dim{} : summed[copy.summed - 1];
  const bool runs = copy.summed_count > 1 && (columns.extent == 1 || std::abs(along.from) < std::abs(columns.from));
  const int outer_summed = runs ? copy.summed - 1 : copy.summed;
  const std::int64_t outer_count = runs ? copy.summed_count / along.extent : copy.summed_count;
  const std::int64_t parts = (columns.extent + most_columns - 1) / most_columns;
  const std::int64_t rows = copy.kept_count / columns.extent;
  const std::int64_t part_elements = std::min(columns.extent, most_columns) * std::max<std::int64_t>(copy.summed_count, 1);
  parallel_ranges(rows * parts, 1, least_elements / part_elements, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t index = begin; index < end; ++index) {
      const std::int64_t first = index % parts * most_columns;
      const std::int64_t count = std::min(most_columns, columns.extent - first);
      each_place(copy.dims, std::max(copy.kept - 1, 0), index / parts, 1, [&](std::int64_t from, std::int64_t to) {
        Sum sums[most_columns] = {};
        const T* row = x + from + first * columns.from;
        each_place(summed, outer_summed, 0, outer_count, [&](std::int64_t distance, std::int64_t) {
          const T* terms = row + distance;
          if (runs) {
            for (std::int64_t j = 0; j < count; ++j)
              sums[j] += sum_of_strided(terms + j * columns.from, along.from, along.extent);
          } else if (columns.from == 1) {
            for (std::int64_t j = 0; j < count; ++j) sums[j] += static_cast<Sum>(static_cast<Accumulate<T>>(terms[j]));
          } else {
            for (std::int64_t j = 0; j < count; ++j) {
              sums[j] += static_cast<Sum>(static_cast<Accumulate<T>>(terms[j * columns.from]));
            }
          }
        });
        T* result = y + to + first * columns.to;
        for (std::int64_t j = 0; j < count; ++j) {
          T& element = result[j * columns.to];
          const Sum before = accumulate ? static_cast<Sum>(static_cast<Accumulate<T>>(element)) : Sum{};
          element = static_cast<T>(static_cast<Accumulate<T>>(before + sums[j]));
        }
      });
    }
  });
}

}  // namespace trireme::ops
