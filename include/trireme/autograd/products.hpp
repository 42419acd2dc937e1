#pragma once

#include <string_view>

#include "trireme/autograd/variable.hpp"
#include "trireme/core/export.hpp"

// The products of ops/matmul/products.hpp, of variables: made of reshape, permute, sum and matmul, which an observer sees and
// whose gradients theirs are.
namespace trireme TRIREME_EXPORT {

template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> outer(const Variable<T, D>& a, const Variable<T, D>& b);
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> dot(const Variable<T, D>& a, const Variable<T, D>& b);

//   einsum("bij,bjk->bik", a, b)
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> einsum(std::string_view equation, const Variable<T, D>& a, const Variable<T, D>& b);
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> einsum(std::string_view equation, const Variable<T, D>& x);

}  // namespace trireme
