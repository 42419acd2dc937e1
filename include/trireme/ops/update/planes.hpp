#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "trireme/core/export.hpp"
#include "trireme/core/host_device.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

// Marks a plane that only some variants of an optimizer keep: its pointer may be null.
template <typename T>
struct Optional {};

// Passed to a formula in place of the elements of a null plane.
struct NotKept {
  TRIREME_HOST_DEVICE NotKept& operator[](auto) { return *this; }
};
template <typename Element>
constexpr bool is_kept = !std::is_same_v<std::remove_const_t<Element>, NotKept>;

template <std::size_t Index, typename Element>
struct PlaneAt {
  using T = Element;
  static constexpr bool is_optional = false;
  T* plane;
};
template <std::size_t Index, typename Element>
struct PlaneAt<Index, Optional<Element>> {
  using T = Element;
  static constexpr bool is_optional = true;
  T* plane;
};

template <std::size_t Index, typename First, typename... Others>
struct PlaneOf : PlaneOf<Index - 1, Others...> {};
template <typename First, typename... Others>
struct PlaneOf<0, First, Others...> {
  using Element = First;
};

template <typename Indices, typename... Elements>
class PlanesAt;

template <std::size_t... Index, typename... Elements>
class PlanesAt<std::index_sequence<Index...>, Elements...> : PlaneAt<Index, Elements>... {
  template <std::size_t I>
  struct Part {
    using Plane = PlaneAt<I, typename PlaneOf<I, Elements...>::Element>;
  };

 public:
  using T = std::remove_const_t<typename Part<0>::Plane::T>;

  TRIREME_HOST_DEVICE PlanesAt(typename PlaneAt<Index, Elements>::T*... planes) : PlaneAt<Index, Elements>{planes}... {}

  template <std::size_t I>
  TRIREME_HOST_DEVICE auto* plane() const {
    return static_cast<const typename Part<I>::Plane&>(*this).plane;
  }

  // The planes from element `first` on.
  TRIREME_HOST_DEVICE PlanesAt from(std::int64_t first) const {
    return PlanesAt((plane<Index>() == nullptr ? nullptr : plane<Index>() + first)...);
  }

  // Calls call(plane...), with NotKept for planes that are null.
  template <typename Call, typename... Found>
  [[gnu::always_inline]] auto visit(const Call& call, Found... found) const {
    constexpr std::size_t next = sizeof...(Found);
    if constexpr (next == sizeof...(Elements)) {
      return call(found...);
    } else {
      if constexpr (Part<next>::Plane::is_optional) {
        if (plane<next>() == nullptr) return visit(call, found..., NotKept{});
      }
      return visit(call, found..., plane<next>());
    }
  }
};

// Planes of equal length, in the order in which a formula gets their elements. Planes that the formula only reads are const T.
template <typename... Elements>
using Planes = PlanesAt<std::index_sequence_for<Elements...>, Elements...>;

}  // namespace ops
}  // namespace trireme
