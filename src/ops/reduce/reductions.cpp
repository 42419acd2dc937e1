#include "ops/elementwise/floats.hpp"
#include "ops/reduce/reduce_kernels.hpp"
#include "ops/reduce/reductions_kernels.hpp"
#include "ops/reduce/reductions_on.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {
namespace {

template <typename T>
const auto& accumulation_kernels() {
  const ReductionsKernels& kernels = reductions_kernels();
  if constexpr (std::is_same_v<T, double>) return kernels.of_double;
  if constexpr (std::is_same_v<T, std::int32_t>) return kernels.of_int32;
  if constexpr (std::is_same_v<T, std::int64_t>) return kernels.of_int64;
  if constexpr (std::is_same_v<T, bool>) return kernels.of_bool;
  if constexpr (std::is_same_v<T, float> || is_half<T>) return kernels.of_float;
}

template <typename T>
const auto& slope_kernels() {
  if constexpr (std::is_same_v<T, double>) {
    return reductions_kernels().slope_of_double;
  } else {
    return reductions_kernels().slope_of_float;
  }
}

// The result of a row of at most sum_block elements.
template <typename T>
Wide<T> accumulate_row(Accumulation kind, const T* x, std::int64_t count, const Wide<T>* shift) {
  const auto& kernels = accumulation_kernels<T>();
  Wide<T> total = nothing<Wide<T>>(kind);
  if constexpr (is_half<T>) {
    for_pieces<T>(0, count, [&](std::int64_t first, std::int64_t part) {
      Wide<T> of_part;
      kernels.rows(kind, Input<T>(x + first, part).data(), 1, part, shift, &of_part);
      kernels.combine(kind, &total, &of_part, 1);
    });
  } else {
    kernels.rows(kind, x, 1, count, shift, &total);
  }
  return total;
}

// Reduces rows: first parts of each row, [outer * parts], then the results of the parts.
template <typename T>
void accumulate_rows(Accumulation kind, const ReduceSizes& sizes, const T* x, const Wide<T>* shift, Wide<T>* values) {
  const auto& kernels = accumulation_kernels<T>();
  const std::int64_t parts = (sizes.reduced + sum_block - 1) / sum_block;
  if (parts == 1) {
    parallel_rows(sizes.outer, sizes.reduced, [&](std::int64_t begin, std::int64_t end) {
      if constexpr (is_half<T>) {
        for (std::int64_t row = begin; row < end; ++row) {
          values[row] = accumulate_row(kind, x + row * sizes.reduced, sizes.reduced, shift == nullptr ? shift : shift + row);
        }
      } else {
        kernels.rows(kind, x + begin * sizes.reduced, end - begin, sizes.reduced, shift == nullptr ? shift : shift + begin,
                     values + begin);
      }
    });
    return;
  }
  const Tensor<Wide<T>> of_parts({sizes.outer, parts});
  parallel_ranges(sizes.outer * parts, 8, least_elements / sum_block, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t index = begin; index < end; ++index) {
      const std::int64_t row = index / parts;
      const std::int64_t first = index % parts * sum_block;
      of_parts.data()[index] = accumulate_row(kind, x + row * sizes.reduced + first, std::min(sum_block, sizes.reduced - first),
                                              shift == nullptr ? shift : shift + row);
    }
  });
  for (std::int64_t row = 0; row < sizes.outer; ++row) {
    values[row] = nothing<Wide<T>>(kind);
    for (std::int64_t part = 0; part < parts; ++part) {
      kernels.combine(kind, values + row, of_parts.data() + row * parts + part, 1);
    }
  }
}

constexpr std::int64_t rows_of_part = 128;   // rows of columns that are reduced at a time
constexpr std::int64_t widest_part = 1024;   // columns
constexpr std::int64_t narrow_columns = 32;  // below this, several rows are joined into a line
constexpr std::int64_t line_elements = 64;

// results[j] of the rows x[row * stride + j], j < width.
template <typename T>
void accumulate_columns(Accumulation kind, const T* x, std::int64_t rows, std::int64_t stride, std::int64_t width,
                        const Wide<T>* shift, Wide<T>* results, bool further) {
  const auto& kernels = accumulation_kernels<T>();
  if constexpr (is_half<T>) {
    constexpr std::int64_t widest = piece_elements / 4;
    for (std::int64_t first = 0; first < width; first += widest) {
      const std::int64_t columns_here = std::min(widest, width - first);
      const std::int64_t step = piece_elements / columns_here / 4 * 4;  // the kernel adds four rows at a time
      for (std::int64_t row = 0; row < rows; row += step) {
        const std::int64_t count = std::min(step, rows - row);
        float piece[piece_elements];
        for (std::int64_t i = 0; i < count; ++i) widen(x + (row + i) * stride + first, piece + i * columns_here, columns_here);
        kernels.columns(kind, piece, count, columns_here, columns_here, shift == nullptr ? shift : shift + first,
                        results + first, further || row > 0);
      }
    }
  } else {
    kernels.columns(kind, x, rows, stride, width, shift, results, further);
  }
}

// The same for few columns without gaps: reduces the columns of lines of several rows, then combines the results of the rows.
template <typename T>
void accumulate_lines(Accumulation kind, const T* x, std::int64_t rows, std::int64_t width, const Wide<T>* shift,
                      Wide<T>* results) {
  const std::int64_t line_rows = line_elements / width;
  const std::int64_t lines = rows / line_rows;
  Wide<T> shifts[line_elements];
  Wide<T> sums[line_elements];
  for (std::int64_t i = 0; i < line_rows * width && shift != nullptr; ++i) shifts[i] = shift[i % width];
  accumulate_columns(kind, x, lines, line_rows * width, line_rows * width, shift == nullptr ? shift : shifts, sums, false);
  std::copy_n(sums, width, results);
  for (std::int64_t row = 1; row < line_rows; ++row) {
    accumulation_kernels<T>().combine(kind, results, sums + row * width, width);
  }
  const std::int64_t summed = lines * line_rows;
  accumulate_columns(kind, x + summed * width, rows - summed, width, width, shift, results, true);
}

template <typename T>
void accumulate_all_columns(Accumulation kind, const ReduceSizes& sizes, const T* x, const Wide<T>* shift, Wide<T>* values) {
  const std::int64_t inner = sizes.inner;
  const std::int64_t part_rows = inner < narrow_columns ? rows_of_part * (line_elements / inner) : rows_of_part;
  const std::int64_t parts = (sizes.reduced + part_rows - 1) / part_rows;
  const std::int64_t pieces = (inner + widest_part - 1) / widest_part;
  const Tensor<Wide<T>> room = parts == 1 ? Tensor<Wide<T>>() : Tensor<Wide<T>>({sizes.outer, parts, inner});
  Wide<T>* of_parts = parts == 1 ? values : room.data();
  const std::int64_t elements = std::min(part_rows, sizes.reduced) * std::min(widest_part, inner);
  parallel_rows(sizes.outer * parts * pieces, elements, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t index = begin; index < end; ++index) {
      const std::int64_t first = index % pieces * widest_part;
      const std::int64_t part = index / pieces % parts;
      const std::int64_t o = index / pieces / parts;
      const std::int64_t rows = std::min(part_rows, sizes.reduced - part * part_rows);
      const std::int64_t width = std::min(widest_part, inner - first);
      const T* from = x + (o * sizes.reduced + part * part_rows) * inner + first;
      const Wide<T>* shifts = shift == nullptr ? shift : shift + o * inner + first;
      Wide<T>* to = of_parts + (o * parts + part) * inner + first;
      if (inner < narrow_columns && rows > 2 * line_elements) {
        accumulate_lines(kind, from, rows, width, shifts, to);
      } else {
        accumulate_columns(kind, from, rows, inner, width, shifts, to, false);
      }
    }
  });
  if (parts == 1) return;
  parallel_rows(sizes.outer * pieces, parts * std::min(widest_part, inner), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t index = begin; index < end; ++index) {
      const std::int64_t first = index % pieces * widest_part;
      const std::int64_t o = index / pieces;
      accumulate_columns(accumulation_of_parts(kind), of_parts + o * parts * inner + first, parts, inner,
                         std::min(widest_part, inner - first), static_cast<const Wide<T>*>(nullptr), values + o * inner + first,
                         false);
    }
  });
}

// Calls body(first element, its result, number of elements) for runs of neighbours in the elements [begin, end) of x[outer,
// reduced, inner]. A run belongs to one result, or to neighbouring results.
template <typename Body>
void each_run(const ReduceSizes& sizes, std::int64_t begin, std::int64_t end, const Body& body) {
  const std::int64_t length = sizes.inner == 1 ? sizes.reduced : sizes.inner;
  while (begin < end) {
    const std::int64_t run = begin / length;
    const std::int64_t count = std::min((run + 1) * length, end) - begin;
    body(begin, sizes.inner == 1 ? run : run / sizes.reduced * sizes.inner + begin % length, count);
    begin += count;
  }
}

}  // namespace

template <>
template <typename T>
void Reductions<Cpu>::accumulate(Accumulation kind, const ReduceSizes& sizes, const T* x, const Wide<T>* shift,
                                 Wide<T>* values) {
  if (sizes.reduced == 0) {
    std::fill_n(values, sizes.results(), nothing<Wide<T>>(kind));
  } else if (sizes.inner == 1) {
    accumulate_rows(kind, sizes, x, shift, values);
  } else if (sizes.results() > 0) {
    accumulate_all_columns(kind, sizes, x, shift, values);
  }
}

template <>
template <typename Y, typename V>
void Reductions<Cpu>::finish(std::int64_t count, const FinishReduction<Y, V>& body) {
  parallel_elements(count, [&](std::int64_t begin, std::int64_t end) {
    if (body.kind != Finish::itself) {
      for (std::int64_t i = begin; i < end; ++i) body(i);
    } else {
#pragma omp simd
      for (std::int64_t i = begin; i < end; ++i) body.write(Finish::itself, i);
    }
  });
}

template <>
template <typename T>
void Reductions<Cpu>::scale(std::int64_t count, const GradientScale<T>& body) {
  parallel_elements(count, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) body(i);
  });
}

template <>
template <typename T>
void Reductions<Cpu>::gradient(const ReductionGradient<T>& of) {
  using X = Accumulate<T>;
  const auto& kernels = slope_kernels<X>();
  const auto part = [&](const X* x, std::int64_t result, X* dx, std::int64_t count) {
    const double* shift = of.shift == nullptr ? nullptr : of.shift + result;
    if (of.sizes.inner == 1) {
      kernels.row(of.kind, x, of.scale[result], shift == nullptr ? 0 : *shift, dx, count, of.accumulate);
    } else {
      kernels.columns(of.kind, x, of.scale + result, shift, dx, count, of.accumulate);
    }
  };
  parallel_elements(of.sizes.results() * of.sizes.reduced, [&](std::int64_t begin, std::int64_t end) {
    for_pieces<T>(begin, end, [&](std::int64_t piece, std::int64_t piece_count) {
      const auto input = of.x == nullptr ? std::nullopt : std::make_optional<Input<T>>(of.x + piece, piece_count);
      Output<T> output(of.dx + piece, piece_count, of.accumulate);
      each_run(of.sizes, piece, piece + piece_count, [&](std::int64_t first, std::int64_t result, std::int64_t count) {
        part(input ? input->data() + (first - piece) : nullptr, result, output.data() + (first - piece), count);
      });
    });
  });
}

template <>
template <typename T>
void Reductions<Cpu>::product_gradient(const ReduceSizes& sizes, const T* x, const double* dy, T* dx, bool accumulate) {
  const Tensor<double> before({sizes.results() * sizes.reduced});
  const ProductGradient<T> body{sizes, 1, x, nullptr, dy, before.data(), dx, accumulate};
  parallel_rows(sizes.results(), sizes.reduced, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) body(i);
  });
}

}  // namespace trireme::ops

namespace trireme {

TRIREME_INSTANTIATE(ELEMENTS, sum, Cpu)
TRIREME_INSTANTIATE(NUMBERS, max, Cpu)
TRIREME_INSTANTIATE(NUMBERS, min, Cpu)
TRIREME_INSTANTIATE(NUMBERS, ops::reduce, Cpu)
TRIREME_INSTANTIATE(FLOATS, mean, Cpu)
TRIREME_INSTANTIATE(FLOATS, prod, Cpu)
TRIREME_INSTANTIATE(FLOATS, logsumexp, Cpu)
TRIREME_INSTANTIATE(FLOATS, var, Cpu)
TRIREME_INSTANTIATE(FLOATS, stddev, Cpu)
TRIREME_INSTANTIATE(FLOATS, norm, Cpu)
TRIREME_INSTANTIATE(FLOATS, ops::logsumexp, Cpu)
TRIREME_INSTANTIATE(FLOATS, ops::logsumexp_backward, Cpu)
TRIREME_INSTANTIATE(FLOATS, ops::reduce_backward, Cpu)
TRIREME_INSTANCE(Cpu, any)
TRIREME_INSTANCE(Cpu, all)

}  // namespace trireme
