#include "autograd/shapes.hpp"
#include "trireme/autograd/float8.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/ops/matmul/float8.hpp"
#include "trireme/ops/reduce/reduce.hpp"

namespace trireme {
namespace {

using ops::Float8Operand;
using ops::Quantized;

// Of the amaxes of one operand; `update`: they get this one's.
template <typename D>
struct History {
  Tensor<float, D> amaxes;  // undefined: current scaling
  bool update;
};

// The transpose is for backward.
template <typename F, typename D>
Quantized<F, D> quantized(const Tensor<bfloat16, D>& x, History<D> history, bool with_transpose = true) {
  const std::int64_t rows = x.shape().rows();
  const std::int64_t columns = x.shape().back();
  Quantized<F, D> y{.codes = Tensor<F, D>({rows, columns}),
                    .transposed = with_transpose ? Tensor<F, D>({columns, rows}) : Tensor<F, D>(),
                    .scale = Tensor<float, D>({2})};
  if (history.amaxes.defined()) {
    ops::delayed_float8_scale<F>(x, history.amaxes, y.scale);
    if (history.update) y.amax = Tensor<float, D>({1});
  } else {
    Tensor<float, D> amax({1});
    ops::amax(x, amax);
    ops::float8_scale<F>(amax, y.scale);
  }
  ops::quantize(x, y);
  if (y.amax.defined()) ops::push_amax(y.amax, history.amaxes);
  return y;
}

template <typename F, typename D>
Float8Operand<F, D> as_it_is(const Quantized<F, D>& x) {
  return {x.codes, x.scale};
}

template <typename F, typename D>
Float8Operand<F, D> transposed(const Quantized<F, D>& x) {
  return {x.transposed, x.scale};
}

}  // namespace

template <typename D>
Variable<bfloat16, D> float8_linear(const Variable<bfloat16, D>& x, const Variable<bfloat16, D, float>& weight,
                                    const Variable<float, D>& bias, const Float8History<D>& history) {
  require_operands("float8_linear", x, weight, optional(bias));
  require_product("float8_linear", x.shape(), weight.shape());
  const bool has_backward = Tape::current() != nullptr;
  const auto x8 = quantized<float8_e4m3>(x.value(), History<D>{history.x, history.update}, has_backward);
  const auto weight8 = quantized<float8_e4m3>(weight.value(), History<D>{history.weight, history.update}, has_backward);
  Tensor<bfloat16, D> y(with_last_dim(x.shape(), weight.shape()[0]));
  ops::float8_matmul(as_it_is(x8), as_it_is(weight8), bias.value(), y);
  // Backward keeps the transposes alone.
  return record(
      "float8_linear", std::move(y), {x.slot(), weight.slot(), bias.slot()},
      [of_x = transposed(x8), of_weight = transposed(weight8), of_dy = History<D>{history.dy, history.update},
       dx = x.gradient(), dweight = weight.gradient(), dbias = bias.gradient()](const Tensor<bfloat16, D>& dy) {
        const auto dy8 = quantized<float8_e5m2>(dy, of_dy);
        dweight.contribute([&](Tensor<float, D>& gradient, bool accumulate) {
          ops::float8_matmul(transposed(dy8), of_x, {}, gradient, accumulate);
        });
        dbias.contribute([&](Tensor<float, D>& gradient, bool accumulate) { ops::sum_rows(dy, gradient, accumulate); });
        dx.contribute([&](Tensor<bfloat16, D>& gradient, bool accumulate) {
          ops::float8_matmul(as_it_is(dy8), of_weight, {}, gradient, accumulate);
        });
      });
}

template Variable<bfloat16, TRIREME_DEVICE> float8_linear(const Variable<bfloat16, TRIREME_DEVICE>&,
                                                          const Variable<bfloat16, TRIREME_DEVICE, float>&,
                                                          const Variable<float, TRIREME_DEVICE>&,
                                                          const Float8History<TRIREME_DEVICE>&);

}  // namespace trireme
