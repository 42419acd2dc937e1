#pragma once

#include <type_traits>
#include <utility>

#include "trireme/core/dtype.hpp"
#include "trireme/core/export.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme TRIREME_EXPORT {

// A number that the host knows, or one that an operation leaves in the memory of D. Operations take either without waiting.
template <typename T, typename D = Cpu>
class Scalar {
 public:
  static constexpr bool on_host = Tensor<T, D>::on_host;

  Scalar(T value = {}) : value_(value) {}
  explicit Scalar(Tensor<T, D> element) {
    if constexpr (on_host) {
      value_ = element.item();
    } else {
      require(element.numel() == 1, "a scalar is one element, not those of the shape {}", element.shape());
      element_ = std::move(element);
    }
  }

  T item() const { return element_.defined() ? element_.item() : value_; }  // the host waits for one in a GPU's memory
  operator T() const requires on_host { return value_; }

  T known() const noexcept { return value_; }                        // where the host knows the number
  const Tensor<T, D>& element() const noexcept { return element_; }  // undefined there

 private:
  T value_{};
  Tensor<T, D> element_;
};

// What an operation on Tensor<T, D> takes where a plain number does too.
template <typename T, typename D>
using ScalarFor = std::type_identity_t<Scalar<Accumulate<T>, D>>;

}  // namespace trireme
