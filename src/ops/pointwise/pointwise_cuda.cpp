#include "ops/pointwise/pointwise_cuda.hpp"

#include "device/cuda/check.hpp"
#include "device/cuda/stream.hpp"
#include "ops/pointwise/pointwise_on.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {

using device::check_cuda;
using device::native_stream;

template <>
template <typename T>
void Pointwise<Cuda>::binary(Binary kind, const Broadcast& plan, const OperandArgument<T>& a, const OperandArgument<T>& b,
                             T* c) {
  check_cuda(cuda::binary(BinaryElement<T>{plan, kind, a, b, c}, native_stream()), name_of(kind));
}

template <>
template <typename T>
void Pointwise<Cuda>::binary_slope(Binary kind, Side side, const Broadcast& plan, const OperandArgument<T>& a,
                                   const OperandArgument<T>& b, const T* dy, T* dx, bool accumulate) {
  check_cuda(cuda::binary_slope(BinarySlopeElement<T>{plan, kind, side, a, b, dy, dx, accumulate}, native_stream()),
             name_of(kind));
}

template <>
template <typename T>
void Pointwise<Cuda>::unary(Unary kind, const NumbersAs<T>& numbers, std::int64_t count, const T* x, T* y) {
  check_cuda(cuda::unary(kind, numbers.first, numbers.second, count, x, y, native_stream()), name_of(kind));
}

template <>
template <typename T>
void Pointwise<Cuda>::unary_slope(Unary kind, const NumbersAs<T>& numbers, std::int64_t count, const T* x, const T* dy, T* dx,
                                  bool accumulate) {
  check_cuda(cuda::unary_slope(kind, numbers.first, numbers.second, count, x, dy, dx, accumulate, native_stream()),
             name_of(kind));
}

template <>
template <typename T>
void Pointwise<Cuda>::compare(Comparison kind, const Broadcast& plan, const OperandArgument<T>& a, const OperandArgument<T>& b,
                              bool* mask) {
  check_cuda(cuda::compare(CompareElement<T>{plan, kind, a, b, mask}, native_stream()), name_of(kind));
}

template <>
template <typename T>
void Pointwise<Cuda>::test(FloatTest kind, std::int64_t count, const T* x, bool* mask) {
  check_cuda(cuda::test(kind, count, x, mask, native_stream()), name_of(kind));
}

template <>
void Pointwise<Cuda>::logical(Logical kind, const Broadcast& plan, const bool* a, const bool* b, bool* c) {
  using Byte = std::uint8_t;
  const LogicalElement element{plan, kind, reinterpret_cast<const Byte*>(a), reinterpret_cast<const Byte*>(b),
                               reinterpret_cast<Byte*>(c)};
  check_cuda(cuda::logical(element, native_stream()), name_of(kind));
}

template <>
template <typename Bits>
void Pointwise<Cuda>::where(const Broadcast& plan, const bool* mask, const OperandArgument<Bits>& a,
                            const OperandArgument<Bits>& b, Bits* c) {
  check_cuda(cuda::where(WhereElement<Bits>{plan, mask, a, b, c}, native_stream()), "where");
}

TRIREME_INSTANTIATE(NUMBERS, binary, Cuda)
TRIREME_INSTANTIATE(NUMBERS, unary, Cuda)
TRIREME_INSTANTIATE(NUMBERS, compare, Cuda)
TRIREME_INSTANTIATE(ELEMENTS, where, Cuda)
TRIREME_INSTANTIATE(FLOATS, binary_backward, Cuda)
TRIREME_INSTANTIATE(FLOATS, unary_backward, Cuda)
TRIREME_INSTANTIATE(FLOATS, float_test, Cuda)
TRIREME_INSTANTIATE(FLOATS, sum_to_shape, Cuda)
TRIREME_INSTANCE(Cuda, logical)
TRIREME_INSTANCE(Cuda, logical_not)

}  // namespace trireme::ops
