#include "ops/matmul/packed_product.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <tuple>
#include <type_traits>

#include "ops/base/parallel.hpp"
#include "ops/elementwise/floats.hpp"
#include "ops/matmul/product_kernels.hpp"
#include "trireme/device/isa.hpp"
#include "trireme/device/memory.hpp"

namespace trireme::ops {
namespace {

// The distance from one panel or strip to the next. It keeps lines that are written in turn off the same cache sets.
std::int64_t step_of(std::int64_t elements) { return elements + 80; }

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// The size of the L2 cache, in floats. Results do not depend on it.
std::int64_t cache_floats() {
  static const long found = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return std::clamp(found, 1L << 18, 1L << 22) / static_cast<long>(sizeof(float));
}

// Memory of one thread.
class Workspace {
 public:
  float* floats(std::int64_t count) {
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(float);
    if (storage_ == nullptr || storage_->bytes() < bytes)
      storage_ = std::make_unique<device::Storage>(device::host_memory(), bytes);
    return static_cast<float*>(storage_->data());
  }

 private:
  std::unique_ptr<device::Storage> storage_;
};

template <typename T>
void copy_as_floats(const T* from, float* to, std::int64_t count) {
  if constexpr (is_half<T>) {
    widen(from, to, count);
  } else {
    std::memcpy(to, from, static_cast<std::size_t>(count) * sizeof(float));
  }
}

// A stored matrix [rows, columns], possibly transposed, with access to its elements (i, j).
template <typename T>
struct Operand {
  const T* data;
  std::int64_t stride;
  bool transposed;

  const T* at(std::int64_t i, std::int64_t j) const { return data + (transposed ? j * stride + i : i * stride + j); }
};

template <typename T, typename C>
class PackedProduct {
 public:
  PackedProduct(const MatmulShape& shape, const T* a, const T* b, const float* bias, C* c)
      : shape_(shape),
        a_{a, shape.transpose_a ? shape.m : shape.k, shape.transpose_a},
        b_{b, shape.transpose_b ? shape.k : shape.n, shape.transpose_b},
        bias_(bias),
        c_(c) {
    depth_ = depth_of_block(shape.k);
    const std::int64_t width = kernels_.panel_columns;
    const std::int64_t most = std::max(width, cache_floats() * 6 / 10 / depth_ / width * width);
    columns_ = ceil_div(ceil_div(shape.n, ceil_div(shape.n, most)), width) * width;
    strips_ = ceil_div(shape.m, kernels_.strip_rows);
    strip_rows_ = ceil_div(shape.m, strips_);
    strips_ = ceil_div(shape.m, strip_rows_);
  }

  void run() {
    thread_local Workspace of_panels;
    Workspace of_sums;  // freed after the product, because it may be large
    float* const panels = of_panels.floats(columns_ / kernels_.panel_columns * step_of(depth_ * kernels_.panel_columns));
    if (keeps_sums()) sums_ = of_sums.floats(shape_.m * columns_);
    for (std::int64_t j = 0; j < shape_.n; j += columns_) {
      for (std::int64_t p = 0; p < shape_.k; p += depth_) {
        const Block block{.p = p,
                          .depth = std::min(depth_, shape_.k - p),
                          .j = j,
                          .columns = std::min(columns_, shape_.n - j),
                          .panels = panels,
                          .panel_step = step_of(std::min(depth_, shape_.k - p) * kernels_.panel_columns)};
        parallel_ranges(block.columns, kernels_.panel_columns, ceil_div(least_elements, block.depth),
                        [&](std::int64_t begin, std::int64_t end) { pack_b(block, begin, end); });
        parallel_ranges(strips_, 1, ceil_div(least_products, strip_rows_ * block.depth * block.columns),
                        [&](std::int64_t begin, std::int64_t end) { multiply(block, begin, end); });
      }
    }
  }

 private:
  static constexpr std::int64_t least_products = 1 << 20;  // below this a thread is not worth it
  static constexpr std::int64_t piece_rows = 16;           // half elements that are converted at a time

  // Adds the products [p, p + depth) to the columns [j, j + columns) of c.
  struct Block {
    std::int64_t p;
    std::int64_t depth;
    std::int64_t j;
    std::int64_t columns;
    float* panels;
    std::int64_t panel_step;
  };

  // Whether sums of a half result are kept in float, because they take more than one block.
  bool keeps_sums() const { return is_half<C> && shape_.k > depth_; }
  bool is_last(const Block& block) const { return block.p + block.depth == shape_.k; }
  std::int64_t rows_of(std::int64_t strip) const { return std::min(strip_rows_, shape_.m - strip * strip_rows_); }

  // Packs the columns [begin, end) of the block.
  void pack_b(const Block& block, std::int64_t begin, std::int64_t end) const {
    const std::int64_t width = kernels_.panel_columns;
    const T* const from = b_.at(block.p, block.j + begin);
    float* const panels = block.panels + begin / width * block.panel_step;
    if constexpr (!is_half<T>) {
      kernels_.pack_panels(from, b_.stride, b_.transposed, block.depth, end - begin, panels, block.panel_step);
    } else {
      thread_local Workspace of_pieces;
      const std::int64_t columns = end - begin;
      if (b_.transposed) {
        float* const piece = of_pieces.floats(width * block.depth);
        for (std::int64_t column = 0; column < columns; column += width) {
          const std::int64_t count = std::min(width, columns - column);
          for (std::int64_t i = 0; i < count; ++i) widen(from + (column + i) * b_.stride, piece + i * block.depth, block.depth);
          kernels_.pack_panels(piece, block.depth, true, block.depth, count, panels + column / width * block.panel_step,
                               block.panel_step);
        }
      } else {
        float* const piece = of_pieces.floats(piece_rows * columns);
        for (std::int64_t p = 0; p < block.depth; p += piece_rows) {
          const std::int64_t rows = std::min(piece_rows, block.depth - p);
          for (std::int64_t i = 0; i < rows; ++i) widen(from + (p + i) * b_.stride, piece + i * columns, columns);
          kernels_.pack_panels(piece, columns, false, rows, columns, panels + p * width, block.panel_step);
        }
      }
    }
  }

  // Computes the strips [begin, end) of the block.
  void multiply(const Block& block, std::int64_t begin, std::int64_t end) const {
    thread_local Workspace of_strips;
    if (!a_.transposed) {
      float* const strip = of_strips.floats(kernels_.strip_rows * kernels_.row_step);
      for (std::int64_t index = begin; index < end; ++index) {
        const std::int64_t row = index * strip_rows_;
        for (std::int64_t i = 0; i < rows_of(index); ++i) {
          copy_as_floats(a_.at(row + i, block.p), strip + i * kernels_.row_step, block.depth);
        }
        LinesAhead ahead{};
        if (index + 1 < end) ahead = lines(a_.at(row + strip_rows_, block.p), rows_of(index + 1), block.depth);
        multiply_strip(block, index, strip, ahead);
      }
      return;
    }
    const std::int64_t strip_step = step_of(block.depth * kernels_.column_step);
    const std::int64_t most = std::max<std::int64_t>(1, cache_floats() / 8 / strip_step);
    float* const strips = of_strips.floats(most * strip_step);
    for (std::int64_t first = begin; first < end; first += most) {
      const std::int64_t count = std::min(most, end - first);
      pack_a(block, first, count, strips, strip_step);
      const std::int64_t row_of_next = (first + count) * strip_rows_;
      const std::int64_t rows_of_next = std::min(most * strip_rows_, std::min(end * strip_rows_, shape_.m) - row_of_next);
      for (std::int64_t i = 0; i < count; ++i) {
        LinesAhead ahead{};
        if (rows_of_next > 0) {
          const std::int64_t p = block.depth * i / count;
          ahead = lines(a_.at(row_of_next, block.p + p), block.depth * (i + 1) / count - p, rows_of_next);
        }
        multiply_strip(block, first + i, strips + i * strip_step, ahead);
      }
    }
  }

  // The lines of stored rows of a.
  LinesAhead lines(const T* first, std::int64_t rows, std::int64_t columns) const {
    return {.row = reinterpret_cast<const char*>(first),
            .row_bytes = a_.stride * static_cast<std::int64_t>(sizeof(T)),
            .rows = rows,
            .lines = ceil_div(columns * static_cast<std::int64_t>(sizeof(T)), 64)};
  }

  void pack_a(const Block& block, std::int64_t first, std::int64_t count, float* strips, std::int64_t strip_step) const {
    const std::int64_t row = first * strip_rows_;
    const std::int64_t rows = std::min(count * strip_rows_, shape_.m - row);
    const T* const from = a_.at(row, block.p);
    if constexpr (!is_half<T>) {
      kernels_.pack_strips(from, a_.stride, block.depth, rows, strip_rows_, strips, strip_step);
    } else {
      thread_local Workspace of_pieces;
      float* const piece = of_pieces.floats(piece_rows * rows);
      for (std::int64_t p = 0; p < block.depth; p += piece_rows) {
        const std::int64_t deep = std::min(piece_rows, block.depth - p);
        for (std::int64_t i = 0; i < deep; ++i) widen(from + (p + i) * a_.stride, piece + i * rows, rows);
        kernels_.pack_strips(piece, rows, deep, rows, strip_rows_, strips + p * kernels_.column_step, strip_step);
      }
    }
  }

  void multiply_strip(const Block& block, std::int64_t index, const float* strip, const LinesAhead& ahead) const {
    const std::int64_t row = index * strip_rows_;
    const std::int64_t rows = rows_of(index);
    ProductStrip work{.rows = rows,
                      .columns = block.columns,
                      .depth = block.depth,
                      .strip = strip,
                      .by_columns = a_.transposed,
                      .panels = block.panels,
                      .panel_step = block.panel_step,
                      .bias = bias_ == nullptr || block.p > 0 ? nullptr : bias_ + block.j,
                      .c = nullptr,
                      .c_stride = shape_.n,
                      .accumulate = shape_.accumulate || block.p > 0,
                      .ahead = ahead};
    C* const c = c_ + row * shape_.n + block.j;
    if constexpr (!is_half<C>) {
      work.c = c;
      kernels_.multiply(work);
    } else {
      thread_local Workspace of_strip;
      work.c_stride = columns_;
      work.c = sums_ == nullptr ? of_strip.floats(kernels_.strip_rows * columns_) : sums_ + row * columns_;
      if (shape_.accumulate && block.p == 0) {
        for (std::int64_t i = 0; i < rows; ++i) widen(c + i * shape_.n, work.c + i * columns_, block.columns);
      }
      kernels_.multiply(work);
      if (!is_last(block)) return;
      for (std::int64_t i = 0; i < rows; ++i) narrow(work.c + i * columns_, c + i * shape_.n, block.columns);
    }
  }

  const ProductKernels& kernels_ = product_kernels();
  MatmulShape shape_;
  Operand<T> a_;
  Operand<T> b_;
  const float* bias_;
  C* c_;
  float* sums_ = nullptr;    // [m, columns of a block]
  std::int64_t depth_;       // most of a block
  std::int64_t columns_;     // likewise
  std::int64_t strips_;      // of a
  std::int64_t strip_rows_;  // of each but the last
};

}  // namespace

std::int64_t depth_of_block(std::int64_t k) {
  return ceil_div(ceil_div(k, ceil_div(k, product_kernels().most_depth)), 16) * 16;
}

template <typename T, typename C>
void run_packed_product(const MatmulShape& shape, const T* a, const T* b, const float* bias, C* c) {
  PackedProduct<T, C>(shape, a, b, bias, c).run();
}

// The limits are measured against oneDNN's products: benchmarks/results/packed_products_xeon-avx512-2core_2026-11-27.md.
bool prefers_packed_product(const MatmulShape& shape) {
  const auto& [m, n, k] = std::tie(shape.m, shape.n, shape.k);
  // So small that oneDNN's overhead exceeds the multiplications, but with enough rows for packing b to be worth it.
  if (m >= 4 && m <= 64 && n >= 8 && k >= 4 && n * k <= 1 << 12 && m * k * ceil_div(n, 32) <= 1 << 11) return true;
  if (n < 128 || k < 64) return false;
  switch (device::current_isa()) {
    case device::Isa::baseline: break;
    case device::Isa::avx2: return m >= (shape.transpose_a ? 768 : shape.transpose_b ? 256 : 1024);
    case device::Isa::avx512:
      if (shape.transpose_a) return std::min(m, n) <= 512 && std::max(m, n) >= 1024;
      return shape.transpose_b && m >= 1024 && k >= 256 && n * k <= 1 << 21;
  }
  return false;
}

template void run_packed_product(const MatmulShape&, const float*, const float*, const float*, float*);
template void run_packed_product(const MatmulShape&, const bfloat16*, const bfloat16*, const float*, bfloat16*);
template void run_packed_product(const MatmulShape&, const bfloat16*, const bfloat16*, const float*, float*);
template void run_packed_product(const MatmulShape&, const float16*, const float16*, const float*, float16*);
template void run_packed_product(const MatmulShape&, const float16*, const float16*, const float*, float*);

}  // namespace trireme::ops
