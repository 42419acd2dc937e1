#include "precision/instantiate.hpp"
#include "trireme/autograd/operations/array.hpp"
#include "trireme/autograd/operations/elementwise.hpp"
#include "trireme/autograd/operations/matmul.hpp"
#include "trireme/autograd/operations/reduce.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/matmul/einsum_plan.hpp"
#include "trireme/ops/matmul/product_shapes.hpp"

namespace trireme {
namespace {

template <typename T, typename D>
struct EinsumOfVariables {
  using V = Variable<T, D>;
  static V sum(const V& x, const Dims& dims) { return trireme::sum(x, dims); }
  static V reshape(const V& x, const Shape& shape) { return trireme::reshape(x, shape); }
  static V permute(const V& x, const std::vector<int>& order) { return trireme::permute(x, order); }
  static V multiply(const V& a, const V& b) { return matmul(a, b); }
};

}  // namespace

template <typename T, typename D>
Variable<T, D> outer(const Variable<T, D>& a, const Variable<T, D>& b) {
  require_operands("outer", a, b);
  ops::require_vectors("outer", a.shape(), b.shape());
  return matmul(reshape(a, {a.value().numel(), 1}), reshape(b, {1, b.value().numel()}));
}

template <typename T, typename D>
Variable<T, D> dot(const Variable<T, D>& a, const Variable<T, D>& b) {
  require_operands("dot", a, b);
  ops::require_vectors("dot", a.shape(), b.shape());
  return matmul(a, b);
}

template <typename T, typename D>
Variable<T, D> einsum(std::string_view equation, const Variable<T, D>& a, const Variable<T, D>& b) {
  require_operands("einsum", a, b);
  return ops::run_einsum<Variable<T, D>>(ops::einsum_plan(equation, {a.shape(), b.shape()}), {a, b}, EinsumOfVariables<T, D>());
}

template <typename T, typename D>
Variable<T, D> einsum(std::string_view equation, const Variable<T, D>& x) {
  require_operands("einsum", x);
  return ops::run_einsum<Variable<T, D>>(ops::einsum_plan(equation, {x.shape()}), {x}, EinsumOfVariables<T, D>());
}

#define TRIREME_OVERLOADS(T, D)                                                                   \
  template Variable<T, D> outer(const Variable<T, D>&, const Variable<T, D>&);                    \
  template Variable<T, D> dot(const Variable<T, D>&, const Variable<T, D>&);                      \
  template Variable<T, D> einsum(std::string_view, const Variable<T, D>&, const Variable<T, D>&); \
  template Variable<T, D> einsum(std::string_view, const Variable<T, D>&);
TRIREME_EACH(FLOATS, TRIREME_OVERLOADS, TRIREME_DEVICE)
#undef TRIREME_OVERLOADS

}  // namespace trireme
