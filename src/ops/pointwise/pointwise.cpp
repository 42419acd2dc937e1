#include "ops/elementwise/elementwise_kernels.hpp"
#include "ops/pointwise/pieces.hpp"
#include "ops/pointwise/pointwise_on.hpp"
#include "ops/reduce/reduce_kernels.hpp"

namespace trireme::ops {

template <>
template <typename T>
void Pointwise<Cpu>::binary(Binary kind, const Broadcast& plan, const OperandArgument<T>& a, const OperandArgument<T>& b,
                            T* c) {
  const auto& kernels = pointwise_kernels().of<Accumulate<T>>();
  parallel_elements(plan.numel, [&](std::int64_t begin, std::int64_t end) {
    OperandPieces<T> left(plan, 0, a);
    OperandPieces<T> right(plan, 1, b);
    for_broadcast_pieces(plan, begin, end, most_of_piece<T>, [&](std::int64_t first, std::int64_t count) {
      const auto of_left = left.piece(first, count);
      const auto of_right = right.piece(first, count);
      Output<T> to(c + first, count, false);
      kernels.binary(kind, of_left, of_right, to.data(), count);
    });
  });
}

template <>
template <typename T>
void Pointwise<Cpu>::binary_slope(Binary kind, Side side, const Broadcast& plan, const OperandArgument<T>& a,
                                  const OperandArgument<T>& b, const T* dy, T* dx, bool accumulate) {
  const auto& kernels = pointwise_kernels().of<Accumulate<T>>();
  const auto& multiply = elementwise_kernels().of<Accumulate<T>>().multiply;
  parallel_elements(plan.numel, [&](std::int64_t begin, std::int64_t end) {
    OperandPieces<T> left(plan, 0, a);
    OperandPieces<T> right(plan, 1, b);
    Accumulate<T> slope[piece_elements];
    for_broadcast_pieces(plan, begin, end, piece_elements, [&](std::int64_t first, std::int64_t count) {
      const auto of_left = left.piece(first, count);
      const auto of_right = right.piece(first, count);
      kernels.slope(kind, side, of_left, of_right, slope, count);
      const Input<T> upstream(dy + first, count);
      Output<T> to(dx + first, count, accumulate);
      multiply(upstream.data(), slope, to.data(), count, accumulate);
    });
  });
}

template <>
template <typename T>
void Pointwise<Cpu>::unary(Unary kind, const NumbersAs<T>& numbers, std::int64_t numel, const T* x, T* y) {
  const auto& kernels = pointwise_kernels().of<Accumulate<T>>();
  parallel_pieces<T>(numel, [&](std::int64_t begin, std::int64_t count) {
    const Input<T> from(x + begin, count);
    Output<T> to(y + begin, count, false);
    kernels.unary(kind, numbers.first, numbers.second, from.data(), to.data(), count);
  });
}

template <>
template <typename T>
void Pointwise<Cpu>::unary_slope(Unary kind, const NumbersAs<T>& numbers, std::int64_t numel, const T* x, const T* dy, T* dx,
                                 bool accumulate) {
  using A = Accumulate<T>;
  const auto& kernels = pointwise_kernels().of<A>();
  const auto& multiply = elementwise_kernels().of<A>().multiply;
  parallel_elements(numel, [&](std::int64_t begin, std::int64_t end) {
    A slope[piece_elements];
    for (std::int64_t first = begin; first < end; first += piece_elements) {
      const std::int64_t count = std::min(piece_elements, end - first);
      const Input<T> from(x + first, count);
      kernels.unary_slope(kind, numbers.first, numbers.second, from.data(), slope, count);
      const Input<T> upstream(dy + first, count);
      Output<T> to(dx + first, count, accumulate);
      multiply(upstream.data(), slope, to.data(), count, accumulate);
    }
  });
}

template <>
template <typename T>
void Pointwise<Cpu>::compare(Comparison kind, const Broadcast& plan, const OperandArgument<T>& a, const OperandArgument<T>& b,
                             bool* mask) {
  const auto& kernels = pointwise_kernels().of<Accumulate<T>>();
  parallel_elements(plan.numel, [&](std::int64_t begin, std::int64_t end) {
    OperandPieces<T> left(plan, 0, a);
    OperandPieces<T> right(plan, 1, b);
    for_broadcast_pieces(plan, begin, end, most_of_piece<T>, [&](std::int64_t first, std::int64_t count) {
      const auto of_left = left.piece(first, count);
      const auto of_right = right.piece(first, count);
      kernels.compare(kind, of_left, of_right, mask + first, count);
    });
  });
}

template <>
template <typename T>
void Pointwise<Cpu>::test(FloatTest kind, std::int64_t numel, const T* x, bool* mask) {
  const auto& kernels = pointwise_kernels().of<Accumulate<T>>();
  parallel_pieces<T>(numel, [&](std::int64_t first, std::int64_t count) {
    kernels.test(kind, Input<T>(x + first, count).data(), mask + first, count);
  });
}

template <>
void Pointwise<Cpu>::logical(Logical kind, const Broadcast& plan, const bool* a, const bool* b, bool* c) {
  using Byte = std::uint8_t;
  const auto kernel = pointwise_kernels().logical;
  parallel_elements(plan.numel, [&](std::int64_t begin, std::int64_t end) {
    OperandPieces<Byte> left(plan, 0, {.data = reinterpret_cast<const Byte*>(a)});
    OperandPieces<Byte> right(plan, 1, {.data = reinterpret_cast<const Byte*>(b)});
    for_broadcast_pieces(plan, begin, end, most_of_piece<Byte>, [&](std::int64_t first, std::int64_t count) {
      const auto of_left = left.piece(first, count);
      const auto of_right = right.piece(first, count);
      kernel(kind, of_left, of_right, reinterpret_cast<Byte*>(c) + first, count);
    });
  });
}

template <>
template <typename Bits>
void Pointwise<Cpu>::where(const Broadcast& plan, const bool* mask, const OperandArgument<Bits>& a,
                           const OperandArgument<Bits>& b, Bits* c) {
  const auto kernel = pointwise_kernels().where<Bits>();
  parallel_elements(plan.numel, [&](std::int64_t begin, std::int64_t end) {
    OperandPieces<bool> where_left(plan, 0, {.data = mask});
    OperandPieces<Bits> left(plan, 1, a);
    OperandPieces<Bits> right(plan, 2, b);
    for_broadcast_pieces(plan, begin, end, piece_elements, [&](std::int64_t first, std::int64_t count) {
      const bool* bits = where_left.elements(first, count);
      const auto of_left = left.piece(first, count);
      const auto of_right = right.piece(first, count);
      kernel(bits, of_left, of_right, c + first, count);
    });
  });
}

namespace {

// Rows that are summed on their own before they are added to the sum of all.
constexpr std::int64_t block_of_rows = 64;
constexpr std::int64_t block_of_columns = piece_elements / 4;

// to[j] = sum over r of x[r * stride + j], j < width, which is at most block_of_columns.
template <typename T>
void sum_columns(const T* x, std::int64_t rows, std::int64_t stride, std::int64_t width, Accumulate<T>* to) {
  using A = Accumulate<T>;
  const auto& kernels = reduce_kernels().of<A>();
  std::fill_n(to, width, A{});
  for (std::int64_t row = 0; row < rows; row += block_of_rows) {
    const std::int64_t count = std::min(block_of_rows, rows - row);
    A sums[2 * block_of_columns];  // of these rows, and of the four that are converted
    std::fill_n(sums, width, A{});
    if constexpr (is_half<T>) {
      for (std::int64_t i = row; i < row + count; ++i) {
        widen(x + i * stride, sums + block_of_columns, width);
        kernels.sum_rows(sums + block_of_columns, 1, width, width, sums, true);
      }
    } else {
      kernels.sum_rows(x + row * stride, count, stride, width, sums, true);
    }
    kernels.sum_rows(sums, 1, width, width, to, true);
  }
}

// In double, by blocks.
template <typename T>
Accumulate<T> sum_neighbours(const T* x, std::int64_t count) {
  const auto& kernels = reduce_kernels().of<Accumulate<T>>();
  constexpr std::int64_t block = is_half<T> ? piece_elements : sum_block;
  double total = 0;
  for (std::int64_t first = 0; first < count; first += block) {
    const std::int64_t part = std::min(block, count - first);
    total += kernels.sum(Input<T>(x + first, part).data(), part);
  }
  return static_cast<Accumulate<T>>(total);
}

}  // namespace

template <>
template <typename T>
void Pointwise<Cpu>::sum_middle(std::int64_t numel, std::int64_t middle, std::int64_t last, const T* x, Accumulate<T>* y) {
  if (last == 1) {
    parallel_ranges(numel, 1, least_elements / middle, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) y[i] = sum_neighbours(x + i * middle, middle);
    });
    return;
  }
  const std::int64_t blocks = (last + block_of_columns - 1) / block_of_columns;  // of each row
  const std::int64_t width = std::min(last, block_of_columns);
  parallel_ranges(numel * blocks, 1, least_elements / (middle * width), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t column = i % blocks * block_of_columns;
      sum_columns(x + i / blocks * middle * last + column, middle, last, std::min(block_of_columns, last - column),
                  y + i / blocks * last + column);
    }
  });
}

TRIREME_INSTANTIATE_POINTWISE(Cpu);

}  // namespace trireme::ops
