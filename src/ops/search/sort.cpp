#include <algorithm>
#include <vector>

#include "ops/base/parallel.hpp"
#include "ops/search/sort_on.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {

Shape topk_shape(const Shape& shape, std::int64_t k, int dim) {
  const std::int64_t extent = reduce_plan("topk", shape, dim).sizes.reduced;
  require(k >= 0 && k <= extent, "topk: k is {}, but dim {} of the shape {} has {} elements", k, dim, shape, extent);
  std::vector<std::int64_t> dims(shape.dims().begin(), shape.dims().end());
  if (dims.empty()) {
    require(k == 1, "topk: k is {}, but a scalar has one element", k);
  } else {
    dims[static_cast<std::size_t>(dim < 0 ? dim + shape.size() : dim)] = k;
  }
  return Shape(dims);
}

template <>
template <typename T>
void Sort<Cpu>::run(const ReduceSizes& sizes, const T* x, bool descending, std::int64_t taken, T* values,
                    std::int64_t* indices) {
  constexpr std::int64_t work_of_element = 16;  // comparisons of each element in a sort
  parallel_rows(sizes.results(), sizes.reduced * work_of_element, [&](std::int64_t begin, std::int64_t end) {
    std::vector<Ranked> elements(static_cast<std::size_t>(sizes.reduced));
    for (std::int64_t row = begin; row < end; ++row) {
      for (std::int64_t place = 0; place < sizes.reduced; ++place) {
        elements[static_cast<std::size_t>(place)] = ranked(sizes, x, descending, row, place);
      }
      if (taken < sizes.reduced) {
        std::nth_element(elements.begin(), elements.begin() + taken, elements.end(), comes_before);
      }
      std::sort(elements.begin(), elements.begin() + taken, comes_before);
      for (std::int64_t t = 0; t < taken; ++t) {
        const std::int64_t place = elements[static_cast<std::size_t>(t)].place;
        const std::int64_t o = row / sizes.inner;
        const std::int64_t j = row % sizes.inner;
        values[(o * taken + t) * sizes.inner + j] = x[(o * sizes.reduced + place) * sizes.inner + j];
        indices[(o * taken + t) * sizes.inner + j] = place;
      }
    }
  });
}

}  // namespace trireme::ops

namespace trireme {

TRIREME_INSTANTIATE(NUMBERS, sort, Cpu)
TRIREME_INSTANTIATE(NUMBERS, argsort, Cpu)
TRIREME_INSTANTIATE(NUMBERS, topk, Cpu)
TRIREME_INSTANTIATE(NUMBERS, ops::sort, Cpu)

}  // namespace trireme
