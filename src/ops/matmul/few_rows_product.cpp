#include "ops/matmul/few_rows_product.hpp"

#include <algorithm>
#include <type_traits>

#include "ops/base/parallel.hpp"
#include "ops/elementwise/floats.hpp"
#include "ops/matmul/few_rows_kernels.hpp"
#include "ops/matmul/packed_product.hpp"

namespace trireme::ops {
namespace {

constexpr std::int64_t most_columns = 16;        // of a kernel's sums
constexpr std::int64_t piece_depth = 128;        // half elements that are converted at a time
constexpr std::int64_t least_weights = 1 << 15;  // below this a thread is not worth it

template <typename T, typename C>
class FewRowsProduct {
 public:
  FewRowsProduct(const MatmulShape& shape, const float* a, const T* b, const float* bias, C* c)
      : shape_(shape), a_(a), b_(b), bias_(bias), c_(c), depth_(depth_of_block(shape.k)) {}

  void columns(std::int64_t begin, std::int64_t end) const {
    for (std::int64_t j = begin; j < end; j += kernels_.most_columns) {
      const std::int64_t count = std::min(kernels_.most_columns, end - j);
      float total[8 * most_columns];
      for (std::int64_t p = 0; p < shape_.k; p += depth_) {
        float sums[8 * most_columns] = {};
        const bool has_next = j + 2 * kernels_.most_columns <= end;
        add_products(j, count, p, std::min(depth_, shape_.k - p), has_next, sums);
        for (std::int64_t row = 0; row < shape_.m; ++row) {
          for (std::int64_t i = 0; i < count; ++i) {
            const std::int64_t place = row * kernels_.most_columns + i;
            const float before = p > 0 ? total[place] : bias_ != nullptr ? bias_[j + i] : 0.0F;
            total[place] = p > 0 || bias_ != nullptr ? sums[place] + before : sums[place];
          }
        }
      }
      for (std::int64_t row = 0; row < shape_.m; ++row) {
        const float* const from = total + row * kernels_.most_columns;
        C* const to = c_ + row * shape_.n + j;
        if constexpr (is_half<C>) {
          narrow(from, to, count);
        } else {
          std::copy_n(from, count, to);
        }
      }
    }
  }

 private:
  void add_products(std::int64_t j, std::int64_t count, std::int64_t p, std::int64_t depth, bool has_next, float* sums) const {
    const T* const from = b_ + j * shape_.k + p;
    if constexpr (std::is_same_v<T, bfloat16>) {
      kernels_.multiply_bfloat16({.rows = shape_.m,
                                  .columns = count,
                                  .depth = depth,
                                  .a = a_ + p,
                                  .a_stride = shape_.k,
                                  .b = from,
                                  .b_stride = shape_.k,
                                  .ahead = has_next ? from + kernels_.most_columns * shape_.k : nullptr,
                                  .sums = sums});
      return;
    }
    float piece[most_columns * piece_depth];
    for (std::int64_t first = 0; first < depth; first += piece_depth) {
      const std::int64_t deep = std::min(piece_depth, depth - first);
      for (std::int64_t i = 0; i < count; ++i) {
        if (has_next) {
          const T* const next = from + (kernels_.most_columns + i) * shape_.k + first;
          for (std::int64_t line = 0; line < deep; line += 32) __builtin_prefetch(next + line);
        }
        widen(from + i * shape_.k + first, piece + i * piece_depth, deep);
      }
      kernels_.multiply({.rows = shape_.m,
                         .columns = count,
                         .depth = deep,
                         .a = a_ + p + first,
                         .a_stride = shape_.k,
                         .b = piece,
                         .b_stride = piece_depth,
                         .ahead = nullptr,
                         .sums = sums});
    }
  }

  const FewRowsKernels& kernels_ = few_rows_kernels();
  MatmulShape shape_;
  const float* a_;
  const T* b_;
  const float* bias_;
  C* c_;
  std::int64_t depth_;  // of a sum
};

}  // namespace

bool has_few_rows(const MatmulShape& shape) {
  const bool may = shape.operands != DType::float32 || (shape.inference && shape.n * shape.k >= 1 << 14);
  return may && shape.m <= few_rows_kernels().most_rows && !shape.transpose_a && shape.transpose_b && !shape.accumulate &&
         !shape.packed_b;
}

template <typename T, typename C>
void run_few_rows_product(const MatmulShape& shape, const T* a, const T* b, const float* bias, C* c) {
  FloatRow<T> floats(shape.m * shape.k);
  const FewRowsProduct<T, C> product(shape, floats.read(a), b, bias, c);
  parallel_ranges(shape.n, 64, least_weights / shape.k,
                  [&](std::int64_t begin, std::int64_t end) { product.columns(begin, end); });
}

template <>
void run_few_rows_product(const MatmulShape& shape, const float* a, const float* b, const float* bias, float* c) {
  parallel_ranges(shape.n, 64, least_weights / shape.k, [&](std::int64_t begin, std::int64_t end) {
    few_rows_kernels().multiply_partially({.rows = shape.m,
                                           .columns = end - begin,
                                           .depth = shape.k,
                                           .a = a,
                                           .a_stride = shape.k,
                                           .b = b + begin * shape.k,
                                           .b_stride = shape.k,
                                           .ahead = nullptr,
                                           .sums = c + begin},
                                          shape.n);
    for (std::int64_t row = 0; bias != nullptr && row < shape.m; ++row) {
      for (std::int64_t j = begin; j < end; ++j) c[row * shape.n + j] += bias[j];
    }
  });
}

template void run_few_rows_product(const MatmulShape&, const bfloat16*, const bfloat16*, const float*, bfloat16*);
template void run_few_rows_product(const MatmulShape&, const bfloat16*, const bfloat16*, const float*, float*);
template void run_few_rows_product(const MatmulShape&, const float16*, const float16*, const float*, float16*);
template void run_few_rows_product(const MatmulShape&, const float16*, const float16*, const float*, float*);

}  // namespace trireme::ops
