#include <memory>
#include <utility>

#include "autograd/shapes.hpp"
#include "trireme/autograd/functions.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/matmul/batched_matmul.hpp"
#include "trireme/ops/matmul/linear_gelu.hpp"
#include "trireme/ops/matmul/matmul.hpp"
#include "trireme/ops/reduce/reduce.hpp"

namespace trireme {

template <typename T, typename D, typename G>
requires std::same_as<G, T> || std::same_as<G, Accumulate<T>> Variable<T, D> matmul(const Variable<T, D>& a,
                                                                                    const Variable<T, D, G>& b) {
  require_operands("matmul", a, b);
  Tensor<T, D> c(ops::batched_matmul_shape(a.shape(), b.shape()));
  ops::batched_matmul(a.value(), b.value(), c);
  return record("matmul", std::move(c), {a.slot(), b.slot()}, [a, b](const Tensor<T, D>& dc) {
    a.gradient().contribute([&](Tensor<T, D>& da, bool accumulate) {
      ops::batched_matmul_backward<T, D>({.a = a.value(), .b = b.value(), .dc = dc, .da = da, .accumulate_da = accumulate});
    });
    b.gradient().contribute([&](Tensor<G, D>& db, bool accumulate) {
      ops::batched_matmul_backward<T, D, G>({.a = a.value(), .b = b.value(), .dc = dc, .db = db, .accumulate_db = accumulate});
    });
  });
}

template <typename T, typename D>
Variable<T, D> linear(const Variable<T, D>& x, const Variable<T, D, Accumulate<T>>& weight,
                      const Variable<Accumulate<T>, D>& bias) {
  require_operands("linear", x, weight, optional(bias));
  using A = Accumulate<T>;
  require_product("linear", x.shape(), weight.shape());
  Tensor<T, D> y(with_last_dim(x.shape(), weight.shape()[0]));
  ops::linear(x.value(), weight.value(), bias.value(), y);
  return record_split(
      "linear", std::move(y), {x.slot()}, {weight.slot(), bias.slot()},
      [weight = weight.value(), gradient = x.gradient()](const Tensor<T, D>& dy) {
        gradient.contribute(
            [&](Tensor<T, D>& dx, bool accumulate) { ops::matmul(dy, weight, dx, {.accumulate = accumulate}); });
      },
      [x = x.value(), dweight = weight.gradient(), dbias = bias.gradient()](const Tensor<T, D>& dy) {
        dweight.contribute([&](Tensor<A, D>& dw, bool accumulate) {
          ops::matmul(dy, x, dw, {.transpose_a = true, .accumulate = accumulate});
        });
        dbias.contribute([&](Tensor<A, D>& db, bool accumulate) { ops::sum_rows(dy, db, accumulate); });
      });
}

template <typename T, typename D>
Variable<T, D> linear_gelu_linear(const Variable<T, D>& x, const Variable<T, D, Accumulate<T>>& weight1,
                                  const Variable<Accumulate<T>, D>& bias1, const Variable<T, D, Accumulate<T>>& weight2,
                                  const Variable<Accumulate<T>, D>& bias2) {
  require_operands("linear_gelu_linear", x, weight1, optional(bias1), weight2, optional(bias2));
  using A = Accumulate<T>;
  require_product("linear_gelu_linear", x.shape(), weight1.shape());
  Tensor<T, D> gelu_input(with_last_dim(x.shape(), weight1.shape()[0]));
  require_product("linear_gelu_linear", gelu_input.shape(), weight2.shape());
  Tensor<T, D> middle(gelu_input.shape());
  ops::linear_gelu(x.value(), weight1.value(), bias1.value(), gelu_input, middle);
  Tensor<T, D> y(with_last_dim(x.shape(), weight2.shape()[0]));
  ops::linear(middle, weight2.value(), bias2.value(), y);
  // The gradient of gelu_input, which takes its place when either part of backward first asks for it.
  const auto between = [weight = weight2.value(), tensor = std::make_shared<Tensor<T, D>>(std::move(gelu_input)),
                        known = std::make_shared<bool>(false)](const Tensor<T, D>& dy) -> const Tensor<T, D>& {
    if (!std::exchange(*known, true)) {
      Tensor<T, D> gradient(tensor->shape());
      ops::linear_gelu_backward(dy, weight, *tensor, gradient);
      *tensor = std::move(gradient);
    }
    return *tensor;
  };
  return record_split(
      "linear_gelu_linear", std::move(y), {x.slot()}, {weight1.slot(), bias1.slot(), weight2.slot(), bias2.slot()},
      [between, weight = weight1.value(), gradient = x.gradient()](const Tensor<T, D>& dy) {
        gradient.contribute(
            [&](Tensor<T, D>& dx, bool accumulate) { ops::matmul(between(dy), weight, dx, {.accumulate = accumulate}); });
      },
      [between, x = x.value(), middle, dweight1 = weight1.gradient(), dbias1 = bias1.gradient(), dweight2 = weight2.gradient(),
       dbias2 = bias2.gradient()](const Tensor<T, D>& dy) mutable {
        dweight2.contribute([&](Tensor<A, D>& dw, bool accumulate) {
          ops::matmul(dy, middle, dw, {.transpose_a = true, .accumulate = accumulate});
        });
        middle = {};
        dbias2.contribute([&](Tensor<A, D>& db, bool accumulate) { ops::sum_rows(dy, db, accumulate); });
        dweight1.contribute([&](Tensor<A, D>& dw, bool accumulate) {
          ops::matmul(between(dy), x, dw, {.transpose_a = true, .accumulate = accumulate});
        });
        dbias1.contribute([&](Tensor<A, D>& db, bool accumulate) { ops::sum_rows(between(dy), db, accumulate); });
      });
}

#define TRIREME_INSTANTIATE(T, A)                                                                                        \
  template Variable<T, TRIREME_DEVICE> matmul(const Variable<T, TRIREME_DEVICE>&, const Variable<T, TRIREME_DEVICE>&);   \
  template Variable<T, TRIREME_DEVICE> linear(const Variable<T, TRIREME_DEVICE>&, const Variable<T, TRIREME_DEVICE, A>&, \
                                              const Variable<A, TRIREME_DEVICE>&);                                       \
  template Variable<T, TRIREME_DEVICE> linear_gelu_linear(                                                               \
      const Variable<T, TRIREME_DEVICE>&, const Variable<T, TRIREME_DEVICE, A>&, const Variable<A, TRIREME_DEVICE>&,     \
      const Variable<T, TRIREME_DEVICE, A>&, const Variable<A, TRIREME_DEVICE>&)
TRIREME_INSTANTIATE(float, float);
TRIREME_INSTANTIATE(double, double);
TRIREME_INSTANTIATE(bfloat16, float);
TRIREME_INSTANTIATE(float16, float);
#undef TRIREME_INSTANTIATE
template Variable<bfloat16, TRIREME_DEVICE> matmul(const Variable<bfloat16, TRIREME_DEVICE>&,
                                                   const Variable<bfloat16, TRIREME_DEVICE, float>&);
template Variable<float16, TRIREME_DEVICE> matmul(const Variable<float16, TRIREME_DEVICE>&,
                                                  const Variable<float16, TRIREME_DEVICE, float>&);

}  // namespace trireme
