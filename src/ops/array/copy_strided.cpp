#include <cstring>

#include "ops/array/copy_strided_on.hpp"
#include "ops/array/strided_sum.hpp"
#include "ops/base/parallel.hpp"
#include "ops/elementwise/elementwise_kernels.hpp"
#include "ops/elementwise/floats.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {
namespace {

using CopyDim = StridedCopy::Dim;

// The bits of elements of any type, at any address.
template <typename Bits>
struct [[gnu::packed, gnu::may_alias]] CopiedWord {
  Bits bits;
};
struct SixteenBytes {
  std::uint64_t first;
  std::uint64_t second;
};

struct MovesBits {
  template <typename Word>
  static void element(const Word& x, Word& y) {
    y = x;
  }
  template <typename Word>
  static void run(const Word* x, Word* y, std::int64_t count) {
    if (count * static_cast<std::int64_t>(sizeof(Word)) >= 128) {
      std::memcpy(y, x, static_cast<std::size_t>(count) * sizeof(Word));
    } else {
      for (std::int64_t i = 0; i < count; ++i) y[i] = x[i];
    }
  }
  // x points to the last of the elements that are read. Reverses 16 bytes at a time, which compilers turn into a shuffle.
  template <typename Word>
  static void reversed_run(const Word* x, Word* y, std::int64_t count) {
    using Bits = decltype(Word::bits);
    constexpr std::int64_t words = 16 / sizeof(Bits);
    std::int64_t i = 0;
    for (; i + words <= count; i += words) {
      Bits forwards[words];
      Bits backwards[words];
      std::memcpy(forwards, x - i - (words - 1), sizeof(forwards));
      for (std::int64_t k = 0; k < words; ++k) backwards[k] = forwards[words - 1 - k];
      std::memcpy(y + i, backwards, sizeof(backwards));
    }
    for (; i < count; ++i) y[i] = x[-i];
  }
};

struct AddsElements {
  template <typename T>
  static void element(const T& x, T& y) {
    y = static_cast<T>(static_cast<Accumulate<T>>(y) + static_cast<Accumulate<T>>(x));
  }
  template <typename T>
  static void run(const T* x, T* y, std::int64_t count) {
    if constexpr (std::is_floating_point_v<Accumulate<T>>) {
      if (count >= 16) {
        const auto& kernels = elementwise_kernels().of<Accumulate<T>>();
        return for_pieces<T>(0, count, [&](std::int64_t first, std::int64_t piece) {
          const Input<T> from(x + first, piece);
          Output<T> to(y + first, piece, true);
          kernels.add(to.data(), from.data(), to.data(), piece);
        });
      }
    }
    for (std::int64_t i = 0; i < count; ++i) element(x[i], y[i]);
  }
  template <typename T>
  static void reversed_run(const T* x, T* y, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) element(x[-i], y[i]);
  }
};

// Copies a part of the last dim, `columns`, and of another one, `rows`, by squares: x is read along `rows`, and y is written
// along `columns`.
template <typename Does, typename T>
void copy_tile(const CopyDim& rows, const CopyDim& columns, const T* x, T* y) {
  constexpr int side = 32;  // of a square, which fits into the L1 cache and has whole cache lines
  T square[side][side + 1];
  for (std::int64_t row = 0; row < rows.extent; row += side) {
    const auto square_rows = static_cast<int>(std::min<std::int64_t>(side, rows.extent - row));
    for (std::int64_t column = 0; column < columns.extent; column += side) {
      const auto square_columns = static_cast<int>(std::min<std::int64_t>(side, columns.extent - column));
      for (int j = 0; j < square_columns; ++j) {
        const T* from = x + (column + j) * columns.from + row * rows.from;
        if (square_rows == side && rows.from == 1) {
          for (int i = 0; i < side; ++i) square[j][i] = from[i];
        } else {
          for (int i = 0; i < square_rows; ++i) square[j][i] = from[i * rows.from];
        }
      }
      for (int i = 0; i < square_rows; ++i) {
        T* to = y + (row + i) * rows.to + column * columns.to;
        if (square_columns == side && columns.to == 1) {
          for (int j = 0; j < side; ++j) Does::element(square[j][i], to[j]);
        } else {
          for (int j = 0; j < square_columns; ++j) Does::element(square[j][i], to[j * columns.to]);
        }
      }
    }
  }
}

template <typename Does, typename T>
void copy_rows(const CopyDim& rows, const CopyDim& columns, const T* x, T* y) {
  for (std::int64_t row = 0; row < rows.extent; ++row, x += rows.from, y += rows.to) {
    if (columns.from == 1 && columns.to == 1) {
      Does::run(x, y, columns.extent);
    } else if (columns.from == -1 && columns.to == 1) {
      Does::reversed_run(x, y, columns.extent);
    } else {
      for (std::int64_t i = 0; i < columns.extent; ++i) Does::element(x[i * columns.from], y[i * columns.to]);
    }
  }
}

template <typename Does, typename T>
void copy_box(const ArrangedCopy& copy, const T* x, T* y) {
  if (copy.kept == 0) return Does::element(*x, *y);
  const int reading = reading_dim(copy);
  CopyDim rows{};
  CopyDim outer[StridedCopy::max_dims];
  int size = 0;
  for (int i = 0; i + 1 < copy.kept; ++i) {
    if (i == (reading < 0 ? copy.kept - 2 : reading)) {
      rows = copy.dims[i];
    } else {
      outer[size++] = copy.dims[i];
    }
  }
  const CopyDim columns = copy.dims[copy.kept - 1];
  // Each thread copies parts of two dims.
  constexpr std::int64_t part = 1 << 13;
  const std::int64_t most_columns = reading < 0 ? part : 128;
  const std::int64_t columns_of_part = std::min(columns.extent, most_columns);
  const std::int64_t most_rows = reading < 0 ? part / columns_of_part : part / columns_of_part / 64 * 64;  // whole squares
  const std::int64_t rows_of_part = std::min(rows.extent, std::max<std::int64_t>(most_rows, 1));
  const std::int64_t column_parts = (columns.extent + columns_of_part - 1) / columns_of_part;
  const std::int64_t row_parts = (rows.extent + rows_of_part - 1) / rows_of_part;
  const std::int64_t outer_parts = copy.kept_count / (rows.extent * columns.extent);
  const std::int64_t least = std::max<std::int64_t>(least_elements / (rows_of_part * columns_of_part), 1);
  parallel_ranges(outer_parts * row_parts * column_parts, 1, least, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t index = begin; index < end; ++index) {
      const std::int64_t column = index % column_parts * columns_of_part;
      const std::int64_t row = index / column_parts % row_parts * rows_of_part;
      const T* from = x + row * rows.from + column * columns.from;
      T* to = y + row * rows.to + column * columns.to;
      each_place(outer, size, index / (column_parts * row_parts), 1, [&](std::int64_t in_x, std::int64_t in_y) {
        from += in_x;
        to += in_y;
      });
      const CopyDim part_rows{std::min(rows_of_part, rows.extent - row), rows.from, rows.to};
      const CopyDim part_columns{std::min(columns_of_part, columns.extent - column), columns.from, columns.to};
      if (reading < 0) {
        copy_rows<Does>(part_rows, part_columns, from, to);
      } else {
        copy_tile<Does>(part_rows, part_columns, from, to);
      }
    }
  });
}

template <typename Bits>
void move_words(const ArrangedCopy& copy, const void* x, void* y) {
  copy_box<MovesBits>(copy, static_cast<const CopiedWord<Bits>*>(x), static_cast<CopiedWord<Bits>*>(y));
}

}  // namespace

template <>
void CopyStrided<Cpu>::move(const ArrangedCopy& copy, int element_bytes, const void* x, void* y) {
  ArrangedCopy words = copy;
  switch (take_words(words, element_bytes, 16)) {
    case 1: return move_words<std::uint8_t>(words, x, y);
    case 2: return move_words<std::uint16_t>(words, x, y);
    case 4: return move_words<std::uint32_t>(words, x, y);
    case 8: return move_words<std::uint64_t>(words, x, y);
    default: return move_words<SixteenBytes>(words, x, y);
  }
}

template <>
template <typename T>
void CopyStrided<Cpu>::add(const ArrangedCopy& copy, const T* x, T* y) {
  copy_box<AddsElements>(copy, x, y);
}

template <>
template <typename T>
void CopyStrided<Cpu>::sum(const ArrangedCopy& copy, const T* x, T* y, bool accumulate) {
  sum_box(copy, x, y, accumulate);
}

TRIREME_INSTANTIATE(ELEMENTS, copy_strided, Cpu)
TRIREME_INSTANTIATE(ELEMENTS, move_elements, Cpu)
TRIREME_INSTANTIATE(FLOATS, move_gradient, Cpu)

}  // namespace trireme::ops
