#include "ops/base/parallel.hpp"
#include "ops/search/search_on.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {
namespace {

// first[j] = the first row with the extreme of column j.
template <typename T>
void first_of_columns(const T* x, std::int64_t rows, std::int64_t width, const ExtremeOf<T>* extremes, std::int64_t* first) {
  for (std::int64_t row = rows; row-- > 0;) {
    for (std::int64_t j = 0; j < width; ++j) {
      first[j] = is_extreme<Wide<T>>(widened(x[row * width + j]), widened(extremes[j])) ? row : first[j];
    }
  }
}

}  // namespace

template <>
template <typename T>
void Search<Cpu>::first(const ReduceSizes& sizes, const T* x, const ExtremeOf<T>* extremes, std::int64_t* indices) {
  const FirstExtreme<T> body{sizes, 1, x, extremes, indices};
  parallel_rows(sizes.outer, sizes.reduced * sizes.inner, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t o = begin; o < end; ++o) {
      if (sizes.inner == 1) {
        body(o);
      } else {
        first_of_columns(x + o * sizes.reduced * sizes.inner, sizes.reduced, sizes.inner, extremes + o * sizes.inner,
                         indices + o * sizes.inner);
      }
    }
  });
}

template <>
template <typename T>
void Search<Cpu>::take(std::int64_t count, const Take<T>& body) {
  for (std::int64_t i = 0; i < count; ++i) body(i);
}

template <>
template <typename T>
void Search<Cpu>::take_gradient(std::int64_t count, const TakeGradient<T>& body) {
  for (std::int64_t i = 0; i < count; ++i) body(i);
}

template <>
template <typename T>
void Search<Cpu>::clear(T* x, std::int64_t count) {
  std::fill_n(x, count, T{});
}

}  // namespace trireme::ops

namespace trireme {

TRIREME_INSTANTIATE(NUMBERS, argmax, Cpu)
TRIREME_INSTANTIATE(NUMBERS, argmin, Cpu)
TRIREME_INSTANTIATE(NUMBERS, max_with_index, Cpu)
TRIREME_INSTANTIATE(NUMBERS, min_with_index, Cpu)
TRIREME_INSTANTIATE(NUMBERS, ops::find_extremes, Cpu)
TRIREME_INSTANTIATE(FLOATS, ops::take_backward, Cpu)

}  // namespace trireme
