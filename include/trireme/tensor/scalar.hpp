#pragma once

#include <type_traits>
#include <utility>

#include "trireme/core/dtype.hpp"
#include "trireme/core/export.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme TRIREME_EXPORT {

// A number that the host knows, or a number that an operation writes to the memory of D. Operations accept both kinds, so the
// host need not wait for the number.
template <typename T, typename D = Cpu>
class Scalar {
 public:
  static constexpr bool on_host = Tensor<T, D>::on_host;

  Scalar(T value = {}) : value_(value) {}
  explicit Scalar(Tensor<T, D> element) {
    if constexpr (on_host) {
      value_ = element.item();
    } else {
      require(element.numel() == 1, "a scalar has one element, but this tensor has shape {}", element.shape());
      element_ = std::move(element);
    }
  }

  T item() const { return element_.defined() ? element_.item() : value_; }  // waits for the GPU if the number is in its memory
  operator T() const requires on_host { return value_; }

  T known() const noexcept { return value_; }                        // valid if the host knows the number
  const Tensor<T, D>& element() const noexcept { return element_; }  // undefined if the host knows the number

 private:
  T value_{};
  Tensor<T, D> element_;
};

// The parameter type of operations on Tensor<T, D> that accept a Scalar or a plain number.
template <typename T, typename D>
using ScalarFor = std::type_identity_t<Scalar<Accumulate<T>, D>>;

}  // namespace trireme
