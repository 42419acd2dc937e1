#include "ops/matmul/product_kernels.hpp"

#include <utility>

#include "ops/matmul/transposed_vectors.hpp"

// The products of Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication" (2008): a block of b stays in the
// L2 cache as panels, each with the columns of a tile; strips of a, each with the rows of a tile, go through the L1 cache in
// turn.
namespace trireme::ops::TRIREME_ISA {
namespace {

using V = Vector<float>;
constexpr int width = lanes<float>;
constexpr int most_rows = num_registers == 32 ? 14 : 6;
constexpr int vectors = 2;
constexpr int panel_columns = vectors * width;
constexpr std::int64_t most_depth = num_registers == 32 ? 512 : 384;  // of a strip and a panel that fit into the L1 cache

// The distance of rows of a strip. It keeps rows off the same cache sets, and is constant, so that it is part of the
// instruction.
constexpr std::int64_t row_step = most_depth + 16;
constexpr std::int64_t column_step = most_rows > 8 ? 16 : 8;
static_assert(most_rows <= column_step);

constexpr std::int64_t pause = 8;  // products between two prefetches

// Prefetches lines while a strip is multiplied, in `times` calls of ask(). After the last line it prefetches that line again,
// which costs nothing.
class Ahead {
 public:
  Ahead(const LinesAhead& what, std::int64_t times)
      : what_(what),
        line_(what.row),
        left_(what.lines),
        at_once_(times > 0 ? (what.rows * what.lines + times - 1) / times : 0) {}

  template <int locality>
  void ask() {
    for (std::int64_t i = 0; i < at_once_; ++i) {
      __builtin_prefetch(line_, 0, locality);
      if (--left_ > 0) {
        line_ += 64;
      } else if (--what_.rows > 0) {
        what_.row += what_.row_bytes;
        line_ = what_.row;
        left_ = what_.lines;
      }
    }
  }

 private:
  LinesAhead what_;
  const char* line_;
  std::int64_t left_;
  std::int64_t at_once_;
};

struct Tile {
  const float* panel;
  const float* bias;
  float* c;
  std::int64_t columns;
};

template <int rows, bool by_columns>
[[gnu::noinline]] void multiply_tile(const ProductStrip& strip, const Tile& tile, Ahead& of_strip) {
  V sums[rows][vectors] = {};
  const float* a = strip.strip;
  const float* b = tile.panel;
  const auto add_products = [&](std::int64_t count) {
#pragma GCC unroll 4
    for (std::int64_t p = 0; p < count; ++p) {
      __builtin_prefetch(b + 16 * panel_columns);
      if constexpr (vectors * sizeof(V) > 64) __builtin_prefetch(b + 16 * panel_columns + 16);
      V right[vectors];
#pragma GCC unroll 4
      for (int vector = 0; vector < vectors; ++vector) right[vector] = load<V>(b + vector * width);
#pragma GCC unroll 16
      for (int row = 0; row < rows; ++row) {
        const float left = a[by_columns ? row : row * row_step];
#pragma GCC unroll 4
        for (int vector = 0; vector < vectors; ++vector) sums[row][vector] += left * right[vector];
      }
      a += by_columns ? column_step : 1;
      b += panel_columns;
    }
  };
  Ahead ahead = of_strip;  // a local copy stays in registers
  const float* c_ahead = tile.c;
  std::int64_t p = 0;
  for (; p + pause <= strip.depth; p += pause) {
    ahead.ask<by_columns ? 2 : 3>();
    if (p < pause * rows) {
      __builtin_prefetch(c_ahead, 1);
      __builtin_prefetch(c_ahead + panel_columns - 1, 1);
      c_ahead += strip.c_stride;
    }
    add_products(pause);
  }
  add_products(strip.depth - p);
  of_strip = ahead;
  if (tile.columns == panel_columns) {
#pragma GCC unroll 16
    for (int row = 0; row < rows; ++row) {
#pragma GCC unroll 4
      for (int vector = 0; vector < vectors; ++vector) {
        float* const c = tile.c + row * strip.c_stride + vector * width;
        V sum = sums[row][vector];
        if (strip.accumulate) sum += load<V>(c);
        if (tile.bias != nullptr) sum += load<V>(tile.bias + vector * width);
        store(c, sum);
      }
    }
    return;
  }
  float all[rows][panel_columns];
#pragma GCC unroll 16
  for (int row = 0; row < rows; ++row) {
#pragma GCC unroll 4
    for (int vector = 0; vector < vectors; ++vector) store(&all[row][vector * width], sums[row][vector]);
  }
  for (int row = 0; row < rows; ++row) {
    float* const c = tile.c + row * strip.c_stride;
    for (std::int64_t j = 0; j < tile.columns; ++j) {
      float sum = all[row][j];
      if (strip.accumulate) sum += c[j];
      if (tile.bias != nullptr) sum += tile.bias[j];
      c[j] = sum;
    }
  }
}

template <int rows, bool by_columns>
void multiply_strip(const ProductStrip& strip) {
  const std::int64_t tiles = (strip.columns + panel_columns - 1) / panel_columns;
  Ahead ahead(strip.ahead, tiles * (strip.depth / pause));
  for (std::int64_t column = 0; column < strip.columns; column += panel_columns) {
    const std::int64_t left = strip.columns - column;
    const Tile tile{.panel = strip.panels + column / panel_columns * strip.panel_step,
                    .bias = strip.bias == nullptr ? nullptr : strip.bias + column,
                    .c = strip.c + column,
                    .columns = left < panel_columns ? left : panel_columns};
    multiply_tile<rows, by_columns>(strip, tile, ahead);
  }
}

template <bool by_columns, int... less>
void multiply_rows(const ProductStrip& strip, std::integer_sequence<int, less...>) {
  static constexpr void (*of_rows[])(const ProductStrip&) = {multiply_strip<less + 1, by_columns>...};
  of_rows[strip.rows - 1](strip);
}

void multiply(const ProductStrip& strip) {
  constexpr auto rows = std::make_integer_sequence<int, most_rows>();
  strip.by_columns ? multiply_rows<true>(strip, rows) : multiply_rows<false>(strip, rows);
}

// to[j * to_stride + i] = from[i * from_stride + j] for i < count and j < width, 0 for count <= i < width.
void transpose(const float* from, std::int64_t from_stride, std::int64_t count, float* to, std::int64_t to_stride) {
  Aligned rows[width];
#pragma GCC unroll 16
  for (int row = 0; row < width; ++row) rows[row] = row < count ? load<Aligned>(from + row * from_stride) : Aligned{};
  exchange_all<width / 2>(rows);
#pragma GCC unroll 16
  for (int row = 0; row < width; ++row) store(to + row * to_stride, rows[row]);
}

// Packs one panel of `columns` columns of a transposed b.
void pack_transposed(const float* b, std::int64_t stride, std::int64_t rows, std::int64_t columns, float* panel) {
  for (std::int64_t first = 0; first < panel_columns; first += width) {
    const float* const from = b + first * stride;
    const std::int64_t count = columns < first ? 0 : columns - first < width ? columns - first : width;
    std::int64_t p = 0;
    for (; p + width <= rows; p += width) transpose(from + p, stride, count, panel + p * panel_columns + first, panel_columns);
    for (; p < rows; ++p) {
      for (std::int64_t j = 0; j < width; ++j) panel[p * panel_columns + first + j] = j < count ? from[j * stride + p] : 0;
    }
  }
}

void pack_panels(const float* b, std::int64_t stride, bool transposed, std::int64_t rows, std::int64_t columns, float* panels,
                 std::int64_t panel_step) {
  if (transposed) {
    for (std::int64_t column = 0; column < columns; column += panel_columns, panels += panel_step) {
      const std::int64_t count = columns - column < panel_columns ? columns - column : panel_columns;
      pack_transposed(b + column * stride, stride, rows, count, panels);
    }
    return;
  }
  for (std::int64_t p = 0; p < rows; ++p) {
    const float* from = b + p * stride;
    float* to = panels + p * panel_columns;
    std::int64_t left = columns;
    for (; left >= panel_columns; left -= panel_columns, from += panel_columns, to += panel_step) {
      __builtin_prefetch(from + 4 * stride);
      if constexpr (vectors * sizeof(V) > 64) __builtin_prefetch(from + 4 * stride + 16);
#pragma GCC unroll 4
      for (int vector = 0; vector < vectors; ++vector) store(to + vector * width, load<V>(from + vector * width));
    }
    for (std::int64_t j = 0; left > 0 && j < panel_columns; ++j) to[j] = j < left ? from[j] : 0;
  }
}

void pack_strips(const float* a, std::int64_t stride, std::int64_t rows, std::int64_t columns, std::int64_t strip_columns,
                 float* strips, std::int64_t strip_step) {
  for (std::int64_t p = 0; p < rows; ++p) {
    const float* from = a + p * stride;
    float* to = strips + p * column_step;
    std::int64_t left = columns;
    for (; left >= column_step; left -= strip_columns, from += strip_columns, to += strip_step) {
#pragma GCC unroll 4
      for (int i = 0; i < column_step; i += width) store(to + i, load<V>(from + i));  // may copy more rows than the strip has
    }
    for (; left > 0; left -= strip_columns, from += strip_columns, to += strip_step) {
      for (std::int64_t i = 0; i < strip_columns && i < left; ++i) to[i] = from[i];
    }
  }
}

}  // namespace

const ProductKernels product_kernels{
    .most_depth = most_depth,
    .strip_rows = most_rows,
    .panel_columns = panel_columns,
    .row_step = row_step,
    .column_step = column_step,
    .pack_panels = pack_panels,
    .pack_strips = pack_strips,
    .multiply = multiply,
};

}  // namespace trireme::ops::TRIREME_ISA
