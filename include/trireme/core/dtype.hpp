#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

class bfloat16;
class float16;

// Element types, in memory and in safetensors files.
enum class DType : std::uint8_t {
  boolean,
  uint8,
  int8,
  uint16,
  int16,
  uint32,
  int32,
  uint64,
  int64,
  float8_e4m3,
  float8_e5m2,
  float16,
  bfloat16,
  float32,
  float64,
};

std::size_t size_of(DType dtype);  // bytes per element

std::string_view name_of(DType dtype);  // "float32"

namespace detail {
template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<bool> {
  static constexpr DType value = DType::boolean;
};
template <>
struct DTypeOf<std::uint8_t> {
  static constexpr DType value = DType::uint8;
};
template <>
struct DTypeOf<std::int8_t> {
  static constexpr DType value = DType::int8;
};
template <>
struct DTypeOf<std::uint16_t> {
  static constexpr DType value = DType::uint16;
};
template <>
struct DTypeOf<std::int16_t> {
  static constexpr DType value = DType::int16;
};
template <>
struct DTypeOf<std::uint32_t> {
  static constexpr DType value = DType::uint32;
};
template <>
struct DTypeOf<std::int32_t> {
  static constexpr DType value = DType::int32;
};
template <>
struct DTypeOf<std::int64_t> {
  static constexpr DType value = DType::int64;
};
template <>
struct DTypeOf<std::uint64_t> {
  static constexpr DType value = DType::uint64;
};
template <>
struct DTypeOf<float16> {
  static constexpr DType value = DType::float16;
};
template <>
struct DTypeOf<bfloat16> {
  static constexpr DType value = DType::bfloat16;
};
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::float32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::float64;
};
}  // namespace detail

template <typename T>
inline constexpr DType dtype_of = detail::DTypeOf<T>::value;

namespace detail {
template <typename T>
struct AccumulateOf {
  using type = T;
};
template <>
struct AccumulateOf<float16> {
  using type = float;
};
template <>
struct AccumulateOf<bfloat16> {
  using type = float;
};
}  // namespace detail

// The type in which elements of type T are computed and summed: float for 16-bit and 8-bit floating-point types, otherwise T.
template <typename T>
using Accumulate = typename detail::AccumulateOf<T>::type;

}  // namespace trireme
