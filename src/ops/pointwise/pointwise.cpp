#include "ops/elementwise/elementwise_kernels.hpp"
#include "ops/pointwise/pieces.hpp"
#include "ops/pointwise/pointwise_on.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {

namespace {

// Calls work(left, right, first, count) for pieces of at most `most` elements of the result of two operands.
template <typename T, typename Work>
void for_operand_pieces(const Broadcast& plan, const OperandArgument<T>& a, const OperandArgument<T>& b, std::int64_t most,
                        const Work& work) {
  parallel_elements(plan.numel, [&](std::int64_t begin, std::int64_t end) {
    OperandPieces<T> left(plan, 0, a);
    OperandPieces<T> right(plan, 1, b);
    for_broadcast_pieces(plan, begin, end, most, [&](std::int64_t first, std::int64_t count) {
      work(left.piece(first, count), right.piece(first, count), first, count);
    });
  });
}

}  // namespace

template <>
template <typename T>
void Pointwise<Cpu>::binary(Binary kind, const Broadcast& plan, const OperandArgument<T>& a, const OperandArgument<T>& b,
                            T* c) {
  const auto& kernels = pointwise_kernels().of<Accumulate<T>>();
  for_operand_pieces(plan, a, b, most_of_piece<T>,
                     [&](const auto& left, const auto& right, std::int64_t first, std::int64_t count) {
                       Output<T> to(c + first, count, false);
                       kernels.binary(kind, left, right, to.data(), count);
                     });
}

template <>
template <typename T>
void Pointwise<Cpu>::binary_slope(Binary kind, Side side, const Broadcast& plan, const OperandArgument<T>& a,
                                  const OperandArgument<T>& b, const T* dy, T* dx, bool accumulate) {
  const auto& kernels = pointwise_kernels().of<Accumulate<T>>();
  const auto& multiply = elementwise_kernels().of<Accumulate<T>>().multiply;
  for_operand_pieces(plan, a, b, piece_elements,
                     [&](const auto& left, const auto& right, std::int64_t first, std::int64_t count) {
                       Accumulate<T> slope[piece_elements];
                       kernels.slope(kind, side, left, right, slope, count);
                       const Input<T> upstream(dy + first, count);
                       Output<T> to(dx + first, count, accumulate);
                       multiply(upstream.data(), slope, to.data(), count, accumulate);
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
  for_operand_pieces(plan, a, b, most_of_piece<T>,
                     [&](const auto& left, const auto& right, std::int64_t first, std::int64_t count) {
                       kernels.compare(kind, left, right, mask + first, count);
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

TRIREME_INSTANTIATE(NUMBERS, binary, Cpu)
TRIREME_INSTANTIATE(NUMBERS, unary, Cpu)
TRIREME_INSTANTIATE(NUMBERS, compare, Cpu)
TRIREME_INSTANTIATE(ELEMENTS, where, Cpu)
TRIREME_INSTANTIATE(FLOATS, binary_backward, Cpu)
TRIREME_INSTANTIATE(FLOATS, unary_backward, Cpu)
TRIREME_INSTANTIATE(FLOATS, float_test, Cpu)
TRIREME_INSTANTIATE(FLOATS, sum_to_shape, Cpu)
TRIREME_INSTANCE(Cpu, logical)
TRIREME_INSTANCE(Cpu, logical_not)

}  // namespace trireme::ops
