#pragma once

#include <cstdint>
#include <type_traits>
#include <utility>

#include "trireme/core/bfloat16.hpp"
#include "trireme/core/dtype.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/export.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/tensor/tensor.hpp"

// The operands of functions on elements: Tensors, Variables and numbers.
namespace trireme TRIREME_EXPORT {
namespace detail {

template <typename T>
inline constexpr bool is_float_element =
    std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, bfloat16> || std::is_same_v<T, float16>;
template <typename T>
inline constexpr bool is_whole_element = std::is_same_v<T, std::int32_t> || std::is_same_v<T, std::int64_t>;

template <typename X>
concept Number = std::is_arithmetic_v<X> || std::is_same_v<X, bfloat16> || std::is_same_v<X, float16>;

// The element type of a Tensor; autograd/operations/pointwise.hpp specializes this for Variables.
template <typename X>
struct ElementsOf {
  static constexpr bool floats = false;
  static constexpr bool whole = false;
  static constexpr bool is_tensor = false;
};
template <typename T_, typename D_>
struct ElementsOf<Tensor<T_, D_>> {
  using T = T_;
  using D = D_;
  static constexpr bool floats = is_float_element<T_>;
  static constexpr bool whole = is_whole_element<T_>;
  static constexpr bool is_tensor = true;
};

template <typename X>
concept FloatElements = ElementsOf<X>::floats;  // a Tensor or a Variable of float, double, bfloat16 or float16
template <typename X>
concept Elements = FloatElements<X> || ElementsOf<X>::whole;  // or a Tensor of std::int32_t or std::int64_t

template <typename A, typename B>
inline constexpr bool are_alike = false;
template <Elements A, Elements B>
inline constexpr bool are_alike<A, B> = std::is_same_v<typename ElementsOf<A>::T, typename ElementsOf<B>::T>&&
    std::is_same_v<typename ElementsOf<A>::D, typename ElementsOf<B>::D>;

// Two operands of one element type on one device, or one operand and a number.
template <typename A, typename B>
concept Pair = are_alike<A, B> ||(Elements<A>&& Number<B>) || (Number<A> && Elements<B>);

template <typename X>
concept AnyTensor = ElementsOf<X>::is_tensor && Elements<X>;
template <typename A, typename B>
concept TensorPair = Pair<A, B> &&(AnyTensor<A> || Number<A>)&&(AnyTensor<B> || Number<B>);

// Converts a number to the type in which elements of T are computed. Tensors of integers accept only integers that T can hold.
template <typename T, Number N>
Accumulate<T> number_for(N number) {
  if constexpr (is_whole_element<T>) {
    static_assert(std::is_integral_v<N>, "a tensor of integers and a float have no common type: convert the tensor to floats");
    if constexpr (!std::is_same_v<N, bool>) {
      require(std::in_range<T>(number), "{} does not fit the type {}", number, name_of(dtype_of<T>));
    }
  }
  return static_cast<Accumulate<T>>(number);
}

// Returns the tensor of a Variable, and a Tensor or a number unchanged.
template <typename X>
decltype(auto) value_of(const X& x) {
  if constexpr (requires { x.value(); }) {
    return x.value();
  } else {
    return (x);
  }
}

}  // namespace detail
}  // namespace trireme
