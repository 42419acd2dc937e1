#include "ops/matmul/few_rows_kernels.hpp"

#include <utility>

#include "ops/matmul/transposed_vectors.hpp"

namespace trireme::ops::TRIREME_ISA {
namespace {

using V = Vector<float>;
constexpr int width = lanes<float>;
constexpr int most_rows = 8;

typedef std::uint32_t Bits __attribute__((vector_size(vector_bytes)));

float as_float(float element) { return element; }
float as_float(bfloat16 element) { return __builtin_bit_cast(float, static_cast<std::uint32_t>(element.bits()) << 16); }

// Vectors of b are transposed in registers: each then has, for all columns, one element of the depth, or two neighbouring
// elements of 16 bits.
template <typename B, int rows>
void multiply_rows(const FewRows<B>& product) {
  constexpr int per_place = sizeof(float) / sizeof(B);
  V sums[rows];
#pragma GCC unroll 8
  for (int row = 0; row < rows; ++row) sums[row] = load<V>(product.sums + row * width);
  const auto add_products = [&](const Aligned& right, std::int64_t p) {
#pragma GCC unroll 8
    for (int row = 0; row < rows; ++row) sums[row] += product.a[row * product.a_stride + p] * right;
  };
  std::int64_t p = 0;
  for (; p + width * per_place <= product.depth; p += width * per_place) {
    Aligned columns[width];
#pragma GCC unroll 16
    for (int j = 0; j < width; ++j) {
      columns[j] = j < product.columns ? load<Aligned>(product.b + j * product.b_stride + p) : Aligned{};
      if (product.ahead != nullptr) __builtin_prefetch(product.ahead + j * product.b_stride + p);
    }
    exchange_all<width / 2>(columns);
#pragma GCC unroll 16
    for (int i = 0; i < width; ++i) {
      if constexpr (per_place == 1) {
        add_products(columns[i], p + i);
      } else {
        const Bits pairs = __builtin_bit_cast(Bits, columns[i]);
        add_products(__builtin_bit_cast(Aligned, pairs << 16), p + 2 * i);
        add_products(__builtin_bit_cast(Aligned, pairs & 0xffff0000U), p + 2 * i + 1);
      }
    }
  }
  for (; p < product.depth; ++p) {
    float column[width] = {};
    for (std::int64_t j = 0; j < product.columns; ++j) column[j] = as_float(product.b[j * product.b_stride + p]);
    add_products(load<Aligned>(column), p);
  }
#pragma GCC unroll 8
  for (int row = 0; row < rows; ++row) store(product.sums + row * width, sums[row]);
}

template <typename B, int... less>
void multiply(const FewRows<B>& product, std::integer_sequence<int, less...>) {
  static constexpr void (*of_rows[])(const FewRows<B>&) = {multiply_rows<B, less + 1>...};
  of_rows[product.rows - 1](product);
}
template <typename B>
void multiply(const FewRows<B>& product) {
  multiply(product, std::make_integer_sequence<int, most_rows>());
}

// The number of sums that stay in registers.
constexpr int most_sums = num_registers == 32 ? 16 : 8;
constexpr int columns_of(int rows) { return most_sums / rows; }

// A vector with the sum of the elements of each of `width` vectors.
V sums_of(Aligned (&vectors)[width]) {
  exchange_all<width / 2>(vectors);
#pragma GCC unroll 4
  for (int half = width / 2; half > 0; half /= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < half; ++i) vectors[i] += vectors[i + half];
  }
  return vectors[0];
}

// Computes the first `count` columns at b; the tile has room for columns_of(rows).
template <int rows>
void multiply_tile_partially(const FewRows<float>& product, const float* b, std::int64_t count, float* c,
                             std::int64_t c_stride) {
  constexpr int columns = columns_of(rows);
  constexpr int groups = (rows * columns + width - 1) / width;
  Aligned sums[groups * width] = {};
  const auto add_products = [&](const float* a, std::int64_t a_stride, const float* right, std::int64_t stride) {
    Aligned of_b[columns];
#pragma GCC unroll 16
    for (int j = 0; j < columns; ++j) of_b[j] = load<Aligned>(right + (j < count ? j : 0) * stride);
#pragma GCC unroll 8
    for (int i = 0; i < rows; ++i) {
      const Aligned left = load<Aligned>(a + i * a_stride);
#pragma GCC unroll 16
      for (int j = 0; j < columns; ++j) sums[i * columns + j] += left * of_b[j];
    }
  };
  std::int64_t p = 0;
  for (; p + width <= product.depth; p += width) {
#pragma GCC unroll 16
    for (int j = 0; j < columns; ++j) __builtin_prefetch(b + (columns + j) * product.b_stride + p);
    add_products(product.a + p, product.a_stride, b + p, product.b_stride);
  }
  if (p < product.depth) {
    float of_a[rows * width] = {};
    float of_b[columns * width] = {};
    for (; p < product.depth; ++p) {
      const std::int64_t place = p % width;
      for (int i = 0; i < rows; ++i) of_a[i * width + place] = product.a[i * product.a_stride + p];
      for (std::int64_t j = 0; j < count; ++j) of_b[j * width + place] = b[j * product.b_stride + p];
    }
    add_products(of_a, width, of_b, width);
  }
  float all[groups * width];
#pragma GCC unroll 8
  for (int group = 0; group < groups; ++group) {
    Aligned part[width];
#pragma GCC unroll 16
    for (int i = 0; i < width; ++i) part[i] = sums[group * width + i];
    store(all + group * width, sums_of(part));
  }
  for (int i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < count; ++j) c[i * c_stride + j] = all[i * columns + j];
  }
}

template <int rows>
void multiply_rows_partially(const FewRows<float>& product, std::int64_t c_stride) {
  constexpr std::int64_t columns = columns_of(rows);
  for (std::int64_t j = 0; j < product.columns; j += columns) {
    const std::int64_t left = product.columns - j;
    multiply_tile_partially<rows>(product, product.b + j * product.b_stride, left < columns ? left : columns, product.sums + j,
                                  c_stride);
  }
}

template <int... less>
void multiply_partially(const FewRows<float>& product, std::int64_t c_stride, std::integer_sequence<int, less...>) {
  static constexpr void (*of_rows[])(const FewRows<float>&, std::int64_t) = {multiply_rows_partially<less + 1>...};
  of_rows[product.rows - 1](product, c_stride);
}
void multiply_partially(const FewRows<float>& product, std::int64_t c_stride) {
  multiply_partially(product, c_stride, std::make_integer_sequence<int, most_rows>());
}

}  // namespace

const FewRowsKernels few_rows_kernels{
    .most_rows = most_rows,
    .most_columns = width,
    .multiply = multiply<float>,
    .multiply_bfloat16 = multiply<bfloat16>,
    .multiply_partially = multiply_partially,
};

}  // namespace trireme::ops::TRIREME_ISA
