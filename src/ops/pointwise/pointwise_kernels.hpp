#pragma once

#include <cstdint>
#include <type_traits>

#include "trireme/device/isa.hpp"
#include "trireme/ops/pointwise/pointwise_kind.hpp"

namespace trireme::ops {

// Neighbouring elements of an operand, or one repeated element. Except in `where`, at most one operand of a kernel is repeated.
template <typename T>
struct ElementRun {
  const T* data;
  bool repeated;
};

// Loops over `count` contiguous elements; the output may be an input.
template <typename T>
struct PointwiseKernels {
  void (*binary)(Binary kind, ElementRun<T> a, ElementRun<T> b, T* c, std::int64_t count);
  void (*slope)(Binary kind, Side side, ElementRun<T> a, ElementRun<T> b, T* slope, std::int64_t count);
  void (*unary)(Unary kind, T first, T second, const T* x, T* y, std::int64_t count);
  void (*unary_slope)(Unary kind, T first, T second, const T* x, T* slope, std::int64_t count);
  void (*compare)(Comparison kind, ElementRun<T> a, ElementRun<T> b, bool* mask, std::int64_t count);
  void (*test)(FloatTest kind, const T* x, bool* mask, std::int64_t count);
};

// c = a where the mask is true, b elsewhere. Bits has the size of an element.
template <typename Bits>
using WhereKernel = void (*)(const bool* mask, ElementRun<Bits> a, ElementRun<Bits> b, Bits* c, std::int64_t count);

struct PointwiseTable {
  PointwiseKernels<float> of_float;
  PointwiseKernels<double> of_double;
  PointwiseKernels<std::int32_t> of_int32;  // functions of floats are null
  PointwiseKernels<std::int64_t> of_int64;
  void (*logical)(Logical kind, ElementRun<std::uint8_t> a, ElementRun<std::uint8_t> b, std::uint8_t* c, std::int64_t count);
  WhereKernel<std::uint8_t> where1;
  WhereKernel<std::uint16_t> where2;
  WhereKernel<std::uint32_t> where4;
  WhereKernel<std::uint64_t> where8;

  template <typename T>
  const PointwiseKernels<T>& of() const {
    if constexpr (std::is_same_v<T, float>) {
      return of_float;
    } else if constexpr (std::is_same_v<T, double>) {
      return of_double;
    } else if constexpr (std::is_same_v<T, std::int32_t>) {
      return of_int32;
    } else {
      return of_int64;
    }
  }
  template <typename Bits>
  WhereKernel<Bits> where() const {
    if constexpr (sizeof(Bits) == 1) {
      return where1;
    } else if constexpr (sizeof(Bits) == 2) {
      return where2;
    } else if constexpr (sizeof(Bits) == 4) {
      return where4;
    } else {
      return where8;
    }
  }
};

TRIREME_KERNEL_TABLE(PointwiseTable, pointwise_kernels)

}  // namespace trireme::ops
