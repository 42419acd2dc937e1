#include <algorithm>

#include "ops/base/parallel.hpp"
#include "ops/search/cumulative_on.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {
namespace {

constexpr std::int64_t columns_of_part = 256;
constexpr int rows_at_once = 4;  // rows whose additions do not depend on each other

// The rows [row, row + rows_at_once) of x[rows, reduced].
template <Accumulation kind, typename T, typename Y>
void cumulate_rows(const CumulateChunks<T>& of, std::int64_t row, Y* y, bool accumulate) {
  Wide<T> totals[rows_at_once];
  std::fill_n(totals, rows_at_once, nothing<Wide<T>>(kind));
  for (std::int64_t r = 0; r < of.sizes.reduced; ++r) {
    for (int k = 0; k < rows_at_once; ++k) {
      const std::int64_t place = of.place(row + k, r, 0);
      totals[k] = combined<Wide<T>>(kind, totals[k], widened(of.x[place]));
      write_total(y[place], totals[k], accumulate);
    }
  }
}

// Columns [begin, begin + count) of x[rows, width], row after row.
template <typename T, typename Y>
void cumulate_columns(const CumulateChunks<T>& of, std::int64_t o, std::int64_t begin, std::int64_t count, Y* y,
                      bool accumulate) {
  Wide<T> totals[columns_of_part];
  std::fill_n(totals, count, nothing<Wide<T>>(of.kind));
  for (std::int64_t r = 0; r < of.sizes.reduced; ++r) {
    const std::int64_t first = of.place(o, r, begin);
    for (std::int64_t j = 0; j < count; ++j) {
      totals[j] = combined<Wide<T>>(of.kind, totals[j], widened(of.x[first + j]));
      write_total(y[first + j], totals[j], accumulate);
    }
  }
}

}  // namespace

template <>
template <typename T>
void Cumulate<Cpu>::run(Accumulation kind, const ReduceSizes& sizes, bool backwards, const T* x, SumOf<T>* y, bool accumulate) {
  const CumulateChunks<T> of{kind, sizes, 1, backwards, x};
  if (sizes.inner == 1) {
    const CumulateChunk<T, SumOf<T>> body{of, nullptr, y, accumulate};
    parallel_rows(sizes.outer, sizes.reduced, [&](std::int64_t begin, std::int64_t end) {
      for (; begin + rows_at_once <= end; begin += rows_at_once) {
        if (kind == Accumulation::sum) {
          cumulate_rows<Accumulation::sum>(of, begin, y, accumulate);
        } else {
          cumulate_rows<Accumulation::product>(of, begin, y, accumulate);
        }
      }
      for (; begin < end; ++begin) body(begin);
    });
    return;
  }
  const std::int64_t parts = (sizes.inner + columns_of_part - 1) / columns_of_part;
  parallel_rows(sizes.outer * parts, sizes.reduced * std::min(columns_of_part, sizes.inner),
                [&](std::int64_t begin, std::int64_t end) {
                  for (std::int64_t index = begin; index < end; ++index) {
                    const std::int64_t first = index % parts * columns_of_part;
                    cumulate_columns(of, index / parts, first, std::min(columns_of_part, sizes.inner - first), y, accumulate);
                  }
                });
}

template <>
template <typename T>
void Cumulate<Cpu>::product_gradient(const CumprodGradient<T>& body) {
  parallel_rows(body.sizes.results(), body.sizes.reduced, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) body(i);
  });
}

}  // namespace trireme::ops

namespace trireme {

TRIREME_INSTANTIATE(NUMBERS, cumsum, Cpu)
TRIREME_INSTANTIATE(NUMBERS, ops::cumulate, Cpu)
TRIREME_INSTANTIATE(FLOATS, cumprod, Cpu)
TRIREME_INSTANTIATE(FLOATS, ops::cumprod_backward, Cpu)

}  // namespace trireme
