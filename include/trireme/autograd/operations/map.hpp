#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "trireme/autograd/operations/pointwise.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/core/export.hpp"
#include "trireme/ops/pointwise/map.hpp"

// An operation of your own in one expression, with its gradients:
//
//   const auto y = map([](auto gate, auto up) { return gate * sigmoid(gate) * up; }, gate, up);
//
// The forward computation is one pass over the elements. The gradients of all operands take one more pass, which computes the
// expression again, so only the operands are kept. Operands are broadcast and have one element type; some may be Tensors, which
// are constants. ops/pointwise/map.hpp explains which functions an expression may contain, and how it becomes vector code or
// runs on a GPU.
namespace trireme TRIREME_EXPORT {
namespace detail {

template <typename F, std::size_t n>
struct Map {
  static constexpr std::string_view name = "map";
  F function;

  template <typename T, typename D>
  void forward(const std::vector<Tensor<T, D>>& x, Tensor<T, D>& y) const {
    ops::map(function, std::span<const Tensor<T, D>, n>(x), y);
  }

  template <typename T, typename D>
  void backward(const Tensor<T, D>& dy, const std::vector<Tensor<T, D>>& x, const std::vector<Gradient<T, D>>& dx) const {
    std::array<Tensor<T, D>, n> products;  // in the shape of dy; if an operand has this shape, its gradient
    std::array<bool, n> accumulate{};
    const auto open_from = [&](const auto& open_others, std::size_t k) -> void {
      if (k == n) return ops::map_backward(function, std::span<const Tensor<T, D>, n>(x), dy, products, accumulate);
      if (dx[k].needed() && x[k].shape() == dy.shape()) {
        dx[k].contribute([&](Tensor<T, D>& out, bool adds) {
          products[k] = out;
          accumulate[k] = adds;
          open_others(open_others, k + 1);
          products[k] = {};
        });
      } else {
        if (dx[k].needed()) products[k] = Tensor<T, D>(dy.shape());
        open_others(open_others, k + 1);
      }
    };
    open_from(open_from, 0);
    for (std::size_t k = 0; k < n; ++k) {
      if (!products[k].defined()) continue;
      dx[k].contribute([&](Tensor<T, D>& out, bool adds) { ops::sum_to_shape(products[k], out, adds); });
    }
  }
};

template <typename T, typename D, typename X>
concept MapOperand = std::is_same_v<X, Variable<T, D>> || std::is_same_v<X, Tensor<T, D>>;

}  // namespace detail

// Operands are Variables and Tensors of one element type: float, double, bfloat16 or float16.
template <typename F, typename First, typename... More>
requires(detail::IsVariable<First>::value ||
         (detail::IsVariable<More>::value || ...)) auto map(const F& function, const First& first, const More&... more) {
  using T = typename detail::ElementsOf<First>::T;
  using D = typename detail::ElementsOf<First>::D;
  static_assert((detail::MapOperand<T, D, More> && ...), "the operands of map() have one element type and lie on one device");
  const std::vector<Variable<T, D>> x{Variable<T, D>(first), Variable<T, D>(more)...};
  const std::array<Tensor<T, D>, 1 + sizeof...(More)> values{detail::value_of(first), detail::value_of(more)...};
  const Shape shape = ops::map_shape(std::span(values));
  return record(detail::Map<F, 1 + sizeof...(More)>{function}, Result<T, D>{shape}, kept(x));
}

}  // namespace trireme
