#include "trireme/ops/index/indexing.hpp"

#include <algorithm>
#include <atomic>
#include <vector>

#include "ops/base/parallel.hpp"
#include "ops/index/indexing_body.hpp"
#include "ops/index/indexing_on.hpp"
#include "precision/instantiate.hpp"
#include "trireme/ops/array/movement.hpp"
#include "trireme/ops/index/index.hpp"

namespace trireme::ops {
namespace {

// outer: the dims before `place`, rows: `place`, inner: the dims after it.
Indexing indexing_along(std::string_view name, const Shape& x, int place) {
  Indexing indexing{.name = name, .rows = x[place]};
  for (int dim = 0; dim < place; ++dim) indexing.outer *= x[dim];
  for (int dim = place + 1; dim < x.size(); ++dim) indexing.inner *= x[dim];
  return indexing;
}

// The part of a table that an index uses, which may be smaller along all dims except `place`.
std::vector<Slice> reached_slices(std::string_view name, std::string_view table_name, const Shape& table, int place,
                                  const Shape& index) {
  require(index.size() == table.size(), "{}: index {} needs as many dims as {} {}", name, index, table_name, table);
  std::vector<Slice> slices(static_cast<std::size_t>(table.size()));
  bool all = true;
  for (int dim = 0; dim < table.size(); ++dim) {
    if (dim == place) continue;
    require(index[dim] <= table[dim], "{}: index {} is larger than {} {} along dim {}", name, index, table_name, table, dim);
    slices[static_cast<std::size_t>(dim)].end = index[dim];
    all = all && index[dim] == table[dim];
  }
  return all ? std::vector<Slice>() : slices;
}

// The indices of element `number`, as {2, 0, 1}.
Shape place_in(const Shape& shape, std::int64_t number) {
  std::vector<std::int64_t> place(shape.dims().begin(), shape.dims().end());
  for (auto extent = place.rbegin(); extent != place.rend(); ++extent) {
    const std::int64_t at = number % *extent;
    number /= *extent;
    *extent = at;
  }
  return Shape(place);
}

// Calls use(element of the table, element of the source, count) for runs of elements that `index` selects from the rows [begin,
// end) of the table [outer * rows, inner], in the order of the places or backwards.
template <bool backwards, typename Use>
void each_indexed_run(const Indexing& indexing, const std::int64_t* index, std::int64_t begin, std::int64_t end,
                      const Use& use) {
  const auto [name, outer, rows, places, inner, shared] = indexing;
  for (std::int64_t o = begin / rows; o * rows < end; ++o) {
    const std::int64_t first = std::max(begin - o * rows, std::int64_t{0});
    const std::int64_t last = std::min(end - o * rows, rows);
    for (std::int64_t number = 0; number < places; ++number) {
      const std::int64_t place = backwards ? places - 1 - number : number;
      const std::int64_t at = (o * places + place) * inner;
      const std::int64_t runs = shared ? 1 : inner;
      for (std::int64_t i = 0; i < runs; ++i) {
        const std::int64_t row = shared ? index[place] : index[at + i];
        if (row >= first && row < last) use((o * rows + row) * inner + i, at + i, shared ? inner : 1);
      }
    }
  }
}

// Each thread owns some rows of the table.
template <typename Body>
void parallel_table(const Indexing& indexing, const Body& body) {
  if (indexing.places == 0) return;
  parallel_rows(indexing.outer * indexing.rows, indexing.inner, body);
}

}  // namespace

Shape with_extent(const Shape& shape, int dim, std::int64_t extent) {
  std::vector<std::int64_t> dims(shape.dims().begin(), shape.dims().end());
  dims[static_cast<std::size_t>(dim_of("index", shape, dim))] = extent;
  return Shape(dims);
}

Indexing indexing_of(std::string_view name, const Shape& x, int dim, const Shape& index) {
  const int place = dim_of(name, x, dim);
  Indexing indexing = indexing_along(name, x, place);
  indexing.places = index[place];
  return indexing;
}

Indexing shared_indexing(std::string_view name, const Shape& x, int dim, const Shape& index) {
  Indexing indexing = indexing_along(name, x, dim_of(name, x, dim));
  require(index.size() == 1, "{}: index {} must have one dim", name, index);
  indexing.places = index.numel();
  indexing.shared = true;
  return indexing;
}

std::vector<Slice> reached_slices(std::string_view name, const Shape& x, int dim, const Shape& index) {
  return reached_slices(name, "x", x, dim_of(name, x, dim), index);
}

std::vector<Slice> reached_slices(std::string_view name, const Shape& source, const Shape& index) {
  return reached_slices(name, "source", source, -1, index);
}

template <>
void Indexed<Cpu>::require_range(const Indexing& indexing, const Tensor<std::int64_t, Cpu>& index) {
  std::atomic<bool> any_outside = false;
  parallel_elements(index.numel(), [&](std::int64_t begin, std::int64_t end) {
    bool outside = false;
    for (std::int64_t number = begin; number < end; ++number) {
      const std::int64_t row = index.data()[number];
      outside |= (row < 0) | (row >= indexing.rows);
    }
    if (outside) any_outside = true;
  });
  if (!any_outside) return;
  for (std::int64_t number = 0; number < index.numel(); ++number) {
    const std::int64_t row = index.data()[number];
    if (row >= 0 && row < indexing.rows) continue;
    require(false, "{}: index {} is {}, but must lie in [0, {})", indexing.name, place_in(index.shape(), number), row,
            indexing.rows);
  }
}

// In one pass: takes row 0 for an index out of range, and notes whether there was one.
template <>
template <typename T>
void Indexed<Cpu>::gather(const Indexing& indexing, const T* x, const Tensor<std::int64_t, Cpu>& index, T* y, bool accumulate) {
  const std::int64_t inner = indexing.inner;
  const auto rows = static_cast<std::uint64_t>(indexing.rows);
  if (accumulate || rows == 0) require_range(indexing, index);  // nothing is added before an error
  const auto take = [accumulate](const T& from, T& to) {
    to = accumulate ? static_cast<T>(static_cast<Accumulate<T>>(to) + static_cast<Accumulate<T>>(from)) : from;
  };
  std::atomic<bool> any_outside = false;
  parallel_rows(indexing.outer * indexing.places, inner, [&](std::int64_t begin, std::int64_t end) {
    bool outside = false;
    const auto inside = [&](std::int64_t row) {
      const bool is_inside = static_cast<std::uint64_t>(row) < rows;
      outside |= !is_inside;
      return is_inside ? row : 0;
    };
    while (begin < end) {
      const std::int64_t o = begin / indexing.places;
      const T* table = x + o * indexing.rows * inner;
      const std::int64_t first = o * indexing.places;
      const std::int64_t last = std::min(first + indexing.places, end);
      if (!indexing.shared && inner == 1) {
        for (std::int64_t number = begin; number < last; ++number) take(table[inside(index.data()[number])], y[number]);
        begin = last;
      }
      for (; begin < last; ++begin) {
        T* to = y + begin * inner;
        if (!indexing.shared) {
          for (std::int64_t i = 0; i < inner; ++i) take(table[inside(index.data()[begin * inner + i]) * inner + i], to[i]);
          continue;
        }
        const T* row = table + inside(index.data()[begin - first]) * inner;
        if (accumulate) {
          for (std::int64_t i = 0; i < inner; ++i) take(row[i], to[i]);
        } else {
          std::copy_n(row, inner, to);
        }
      }
    }
    if (outside) any_outside = true;
  });
  if (any_outside) require_range(indexing, index);
}

template <>
template <typename T>
void Indexed<Cpu>::scatter(ScatterKind kind, const Indexing& indexing, const T* source, const std::int64_t* index, T* y) {
  parallel_table(indexing, [&](std::int64_t begin, std::int64_t end) {
    each_indexed_run<false>(indexing, index, begin, end, [&](std::int64_t row, std::int64_t place, std::int64_t count) {
      if (kind == ScatterKind::put) {
        std::copy_n(source + place, count, y + row);
      } else if (kind == ScatterKind::add) {
        for (std::int64_t i = 0; i < count; ++i) {
          y[row + i] = static_cast<T>(static_cast<Accumulate<T>>(y[row + i]) + static_cast<Accumulate<T>>(source[place + i]));
        }
      } else {
        for (std::int64_t i = 0; i < count; ++i) {
          y[row + i] = extreme_of_both(kind == ScatterKind::largest, y[row + i], source[place + i]);
        }
      }
    });
  });
}

// Backwards: of equal indices scatter() kept the last one.
template <>
template <typename T>
void Indexed<Cpu>::scatter_backward(const Indexing& indexing, T* dy, const std::int64_t* index, T* dsource) {
  parallel_table(indexing, [&](std::int64_t begin, std::int64_t end) {
    each_indexed_run<true>(indexing, index, begin, end, [&](std::int64_t row, std::int64_t place, std::int64_t count) {
      std::copy_n(dy + row, count, dsource + place);
      std::fill_n(dy + row, count, T{});
    });
  });
}

template <>
void Indexed<Cpu>::widen(std::int64_t count, const std::int32_t* index, std::int64_t* wide) {
  std::copy_n(index, count, wide);
}

TRIREME_INSTANTIATE(NUMBERS, gather, Cpu)
TRIREME_INSTANTIATE(NUMBERS, scatter_add, Cpu)
TRIREME_INSTANTIATE(NUMBERS, scatter, Cpu)
TRIREME_INSTANTIATE(NUMBERS, scatter_extreme, Cpu)
TRIREME_INSTANTIATE(NUMBERS, scatter_backward, Cpu)
TRIREME_INSTANTIATE(WHOLE_NUMBERS, wide_index, Cpu)

}  // namespace trireme::ops
