#pragma once

#include <fmt/core.h>

#include <iosfwd>
#include <string>
#include <string_view>

#include "trireme/core/export.hpp"
#include "trireme/core/tensor_ref.hpp"
#include "trireme/tensor/tensor.hpp"

// Formats tensors as text, as NumPy does:
//
//   std::cout << x;         // [[ 1.   2.5]
//   fmt::print("{}\n", x);  //  [-3.   4. ]] (float32, shape [2, 2])
//
// For a tensor with more than 1000 elements, only the first and last three elements along each dim are shown. A tensor on a
// GPU is copied to the host.
namespace trireme TRIREME_EXPORT {

namespace detail {
std::string text_of(const TensorRef& tensor);  // the tensor is in host memory
void write_text(std::string_view text, std::ostream& out);
fmt::format_context::iterator write_text(std::string_view text, fmt::format_context& context);
}  // namespace detail

template <typename T, typename D>
std::string to_string(const Tensor<T, D>& tensor) {
  if (!tensor.defined()) return "undefined tensor";
  if constexpr (Tensor<T, D>::on_host) {
    return detail::text_of({.name = {}, .dtype = dtype_of<T>, .shape = tensor.shape(), .data = tensor.data()});
  } else {
    return to_string(tensor.template to<Cpu>());
  }
}

template <typename T, typename D>
std::ostream& operator<<(std::ostream& out, const Tensor<T, D>& tensor) {
  detail::write_text(to_string(tensor), out);
  return out;
}

}  // namespace trireme

template <typename T, typename D>
struct fmt::formatter<trireme::Tensor<T, D>> : fmt::formatter<fmt::string_view> {
  fmt::format_context::iterator format(const trireme::Tensor<T, D>& tensor, fmt::format_context& context) const {
    return trireme::detail::write_text(trireme::to_string(tensor), context);
  }
};
