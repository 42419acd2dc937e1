#include "ops/kernels/tables.hpp"
#include "trireme/math/functors.hpp"

// Causal attention of one head in blocks of queries. All products have the form c[m, n] (+)= a[m, k] b[k, n] with rows of b
// and c contiguous; queries, keys, values and upstream gradients are packed once, keys and values also transposed, and
// padded with zeros so that no product has a tail.
namespace trireme::ops::kernels {
namespace TRIREME_ISA {
namespace {

#if defined(__AVX512F__)
constexpr int vector_bytes = 64;
constexpr int tile_rows = 8;  // 8 x 2 vectors of sums stay in registers
#elif defined(__AVX2__)
constexpr int vector_bytes = 32;
constexpr int tile_rows = 4;
#else
constexpr int vector_bytes = 16;
constexpr int tile_rows = 4;
#endif

constexpr std::int64_t block = 64;  // queries at a time

template <typename T>
constexpr std::int64_t lanes = vector_bytes / static_cast<std::int64_t>(sizeof(T));
template <typename T>
constexpr std::int64_t tile_columns = 2 * lanes<T>;

template <typename T>
struct VectorOf;
template <>
struct VectorOf<float> {
  typedef float type __attribute__((vector_size(vector_bytes), aligned(4), may_alias));
};
template <>
struct VectorOf<double> {
  typedef double type __attribute__((vector_size(vector_bytes), aligned(8), may_alias));
};
template <typename T>
using Vector = typename VectorOf<T>::type;

TRIREME_HOST_DEVICE std::int64_t rounded_up(std::int64_t count, std::int64_t step) { return (count + step - 1) / step * step; }

template <typename T>
struct Matrix {
  T* data;
  std::int64_t row;     // elements from one row to the next
  std::int64_t column;  // from one column to the next; 1 in operands b and c
};

// One tile: tile_rows rows, tile_columns columns of c.
template <typename T, bool accumulate>
TRIREME_HOST_DEVICE void multiply_tile(const T* a, std::int64_t a_row, std::int64_t a_column, const T* b, std::int64_t b_row,
                                       T* c, std::int64_t c_row, std::int64_t k) {
  using V = Vector<T>;
  V sums[tile_rows][2];
#pragma GCC unroll 8
  for (int row = 0; row < tile_rows; ++row) {
    for (int half = 0; half < 2; ++half) {
      sums[row][half] = accumulate ? *reinterpret_cast<const V*>(c + row * c_row + half * lanes<T>) : V{};
    }
  }
  for (std::int64_t inner = 0; inner < k; ++inner) {
    const V b0 = *reinterpret_cast<const V*>(b + inner * b_row);
    const V b1 = *reinterpret_cast<const V*>(b + inner * b_row + lanes<T>);
#pragma GCC unroll 8
    for (int row = 0; row < tile_rows; ++row) {
      const T factor = a[row * a_row + inner * a_column];
      sums[row][0] += factor * b0;
      sums[row][1] += factor * b1;
    }
  }
#pragma GCC unroll 8
  for (int row = 0; row < tile_rows; ++row) {
    for (int half = 0; half < 2; ++half) *reinterpret_cast<V*>(c + row * c_row + half * lanes<T>) = sums[row][half];
  }
}

// c[m, n] (+)= a[m, k] b[k, n]; m a multiple of tile_rows, n of tile_columns. begin(row), end(row) bound the inner index and
// width(row) the columns of the tile that starts at `row`.
template <typename T, bool accumulate, typename Begin, typename End, typename Width>
TRIREME_HOST_DEVICE void multiply(Matrix<const T> a, Matrix<const T> b, Matrix<T> c, std::int64_t m, Begin begin, End end,
                                  Width width) {
  for (std::int64_t row = 0; row < m; row += tile_rows) {
    const std::int64_t first = begin(row);
    const std::int64_t k = end(row) - first;
    for (std::int64_t column = 0; column < width(row); column += tile_columns<T>) {
      multiply_tile<T, accumulate>(a.data + row * a.row + first * a.column, a.row, a.column, b.data + first * b.row + column,
                                   b.row, c.data + row * c.row + column, c.row, k);
    }
  }
}

template <typename T>
struct Layout {
  std::int64_t time;    // padded to whole tiles in both directions
  std::int64_t size;    // likewise
  std::int64_t matrix;  // elements of a packed [time, size] matrix
  Layout(std::int64_t plain_time, std::int64_t plain_size)
      : time(rounded_up(plain_time, block > tile_columns<T> ? block : tile_columns<T>)),
        size(rounded_up(plain_size, tile_columns<T>)),
        matrix(time * size) {}
  // q, k, v, dout; k and v transposed; dk, dv; scores and their gradients for one block of queries.
  std::int64_t workspace() const { return 8 * matrix + 2 * block * time + block * size + 2 * block; }
};

template <typename T>
std::int64_t workspace_elements(std::int64_t time, std::int64_t size) {
  return Layout<T>(time, size).workspace();
}

// packed[time, size] = scale * rows, padded with zeros.
template <typename T>
TRIREME_HOST_DEVICE void pack(const T* rows, std::int64_t stride, std::int64_t time, std::int64_t size, const Layout<T>& layout,
                              T scale, T* packed) {
  for (std::int64_t row = 0; row < layout.time; ++row) {
    T* to = packed + row * layout.size;
    const std::int64_t filled = row < time ? size : 0;
#pragma omp simd
    for (std::int64_t i = 0; i < filled; ++i) to[i] = scale * rows[row * stride + i];
    for (std::int64_t i = filled; i < layout.size; ++i) to[i] = 0;
  }
}

template <typename T>
TRIREME_HOST_DEVICE void transpose(const T* packed, const Layout<T>& layout, T* transposed) {
  constexpr std::int64_t side = 16;
  for (std::int64_t row = 0; row < layout.time; row += side) {
    for (std::int64_t column = 0; column < layout.size; column += side) {
      const std::int64_t height = layout.time - row < side ? layout.time - row : side;
      const std::int64_t width = layout.size - column < side ? layout.size - column : side;
      for (std::int64_t i = 0; i < width; ++i) {
        for (std::int64_t j = 0; j < height; ++j) {
          transposed[(column + i) * layout.time + row + j] = packed[(row + j) * layout.size + column + i];
        }
      }
    }
  }
}

template <typename T>
TRIREME_HOST_DEVICE std::int64_t smaller(T a, T b) {
  return a < b ? a : b;
}

// scores[block, keys] = q k^T of the queries from `first` on; only tiles that some query may see are computed.
template <typename T>
TRIREME_HOST_DEVICE void compute_scores(const T* q, const T* transposed, const Layout<T>& layout, std::int64_t first,
                                        T* scores) {
  const auto visible = [=](std::int64_t row) { return rounded_up(first + row + tile_rows, tile_columns<T>); };
  multiply<T, false>(
      {q + first * layout.size, layout.size, 1}, {transposed, layout.time, 1}, {scores, layout.time, 1}, block,
      [](std::int64_t) { return std::int64_t{0}; }, [=](std::int64_t) { return layout.size; },
      [=](std::int64_t row) { return smaller(visible(row), layout.time); });
}

// Keys that the tile of queries starting at first + row may see, in whole tiles of rows.
TRIREME_HOST_DEVICE std::int64_t keys_of_tile(std::int64_t first, std::int64_t row) { return first + row + tile_rows; }

template <typename T>
void forward(const typename Attention<T>::Head& head, T* out, T* log_sum_exp) {
  const Layout<T> layout(head.time, head.size);
  T* q = head.workspace;
  T* k = q + layout.matrix;
  T* v = k + layout.matrix;
  T* k_transposed = v + layout.matrix;
  T* scores = k_transposed + layout.matrix;
  T* block_out = scores + block * layout.time;
  pack(head.q, head.qkv_stride, head.time, head.size, layout, head.scale, q);
  pack(head.k, head.qkv_stride, head.time, head.size, layout, T(1), k);
  pack(head.v, head.qkv_stride, head.time, head.size, layout, T(1), v);
  transpose(k, layout, k_transposed);

  for (std::int64_t first = 0; first < head.time; first += block) {
    const std::int64_t queries = smaller(block, head.time - first);
    compute_scores(q, k_transposed, layout, first, scores);
    T inverse_sums[block];
    for (std::int64_t row = 0; row < block; ++row) {
      T* values = scores + row * layout.time;
      const std::int64_t keys = first + row + 1;
      T largest = values[0];
#pragma omp simd reduction(max : largest)
      for (std::int64_t i = 0; i < keys; ++i) largest = values[i] > largest ? values[i] : largest;
      T sum = 0;
#pragma omp simd reduction(+ : sum)
      for (std::int64_t i = 0; i < keys; ++i) {
        values[i] = math::exp(values[i] - largest);
        sum += values[i];
      }
      const std::int64_t end = keys_of_tile(first, row / tile_rows * tile_rows);
      for (std::int64_t i = keys; i < end; ++i) values[i] = 0;
      inverse_sums[row] = T(1) / sum;
      if (row < queries) log_sum_exp[first + row] = largest + static_cast<T>(__builtin_log(static_cast<double>(sum)));
    }
    multiply<T, false>(
        {scores, layout.time, 1}, {v, layout.size, 1}, {block_out, layout.size, 1}, block,
        [](std::int64_t) { return std::int64_t{0}; }, [=](std::int64_t row) { return keys_of_tile(first, row); },
        [=](std::int64_t) { return layout.size; });
    for (std::int64_t row = 0; row < queries; ++row) {
      T* to = out + (first + row) * head.out_stride;
#pragma omp simd
      for (std::int64_t i = 0; i < head.size; ++i) to[i] = inverse_sums[row] * block_out[row * layout.size + i];
    }
  }
}

template <typename T>
void backward(const typename Attention<T>::Head& head, const T* out, const T* log_sum_exp, const T* dout, T* dq, T* dk, T* dv) {
  const Layout<T> layout(head.time, head.size);
  T* q = head.workspace;
  T* k = q + layout.matrix;
  T* k_transposed = k + layout.matrix;
  T* v_transposed = k_transposed + layout.matrix;
  T* packed_dout = v_transposed + layout.matrix;
  T* sum_dk = packed_dout + layout.matrix;
  T* sum_dv = sum_dk + layout.matrix;
  T* scores = sum_dv + layout.matrix;
  T* gradients = scores + block * layout.time;  // of the scores
  T* block_dq = gradients + block * layout.time;
  pack(head.v, head.qkv_stride, head.time, head.size, layout, T(1), k);  // only its transpose is needed
  transpose(k, layout, v_transposed);
  pack(head.q, head.qkv_stride, head.time, head.size, layout, head.scale, q);
  pack(head.k, head.qkv_stride, head.time, head.size, layout, T(1), k);
  transpose(k, layout, k_transposed);
  pack(dout, head.out_stride, head.time, head.size, layout, T(1), packed_dout);
  for (std::int64_t i = 0; i < layout.matrix; ++i) sum_dk[i] = 0;
  for (std::int64_t i = 0; i < layout.matrix; ++i) sum_dv[i] = 0;

  for (std::int64_t first = 0; first < head.time; first += block) {
    const std::int64_t queries = smaller(block, head.time - first);
    compute_scores(q, k_transposed, layout, first, scores);
    compute_scores(packed_dout, v_transposed, layout, first, gradients);
    for (std::int64_t row = 0; row < block; ++row) {
      T* p = scores + row * layout.time;
      T* g = gradients + row * layout.time;
      const std::int64_t keys = row < queries ? first + row + 1 : 0;
      if (keys > 0) {
        const T* out_row = out + (first + row) * head.out_stride;
        const T* dout_row = packed_dout + (first + row) * layout.size;
        T delta = 0;
#pragma omp simd reduction(+ : delta)
        for (std::int64_t i = 0; i < head.size; ++i) delta += out_row[i] * dout_row[i];
        const T shift = log_sum_exp[first + row];
#pragma omp simd
        for (std::int64_t i = 0; i < keys; ++i) {
          const T probability = math::exp(p[i] - shift);
          p[i] = probability;
          g[i] = probability * (g[i] - delta);
        }
      }
      const std::int64_t end = first + block;
      for (std::int64_t i = keys; i < end; ++i) p[i] = 0;
      for (std::int64_t i = keys; i < end; ++i) g[i] = 0;
    }
    const auto zero = [](std::int64_t) { return std::int64_t{0}; };
    const auto all_columns = [=](std::int64_t) { return layout.size; };
    multiply<T, false>(
        {gradients, layout.time, 1}, {k, layout.size, 1}, {block_dq, layout.size, 1}, block, zero,
        [=](std::int64_t row) { return keys_of_tile(first, row); }, all_columns);
    for (std::int64_t row = 0; row < queries; ++row) {
      T* to = dq + (first + row) * head.qkv_stride;
#pragma omp simd
      for (std::int64_t i = 0; i < head.size; ++i) to[i] = head.scale * block_dq[row * layout.size + i];
    }
    // Rows are keys here, the inner index queries: a key sees the queries from itself on.
    const auto first_query = [=](std::int64_t key) { return key > first ? key - first : std::int64_t{0}; };
    const auto all_queries = [](std::int64_t) { return block; };
    const std::int64_t keys = first + block;
    multiply<T, true>({gradients, 1, layout.time}, {q + first * layout.size, layout.size, 1}, {sum_dk, layout.size, 1}, keys,
                      first_query, all_queries, all_columns);
    multiply<T, true>({scores, 1, layout.time}, {packed_dout + first * layout.size, layout.size, 1}, {sum_dv, layout.size, 1},
                      keys, first_query, all_queries, all_columns);
  }
  for (std::int64_t row = 0; row < head.time; ++row) {  // q was scaled when it was packed, so dk is complete
#pragma omp simd
    for (std::int64_t i = 0; i < head.size; ++i) {
      dk[row * head.qkv_stride + i] = sum_dk[row * layout.size + i];
      dv[row * head.qkv_stride + i] = sum_dv[row * layout.size + i];
    }
  }
}

}  // namespace

extern const Attention<float> attention_f32{workspace_elements<float>, forward<float>, backward<float>};
extern const Attention<double> attention_f64{workspace_elements<double>, forward<double>, backward<double>};

}  // namespace TRIREME_ISA
}  // namespace trireme::ops::kernels
