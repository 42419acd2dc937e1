#include "trireme/ops/matmul/float8.hpp"

#include "autograd/operations/shapes.hpp"
#include "trireme/autograd/operations/matmul.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/ops/reduce/reduce.hpp"

namespace trireme {
namespace {

using ops::Float8Operand;
using ops::Quantized;

// The amax history of one operand. update: adds the amax of this call.
template <typename D>
struct History {
  Tensor<float, D> amaxes;  // undefined: current scaling
  bool update;
};

// Quantizes x, with its transpose for backward.
template <typename F, typename D>
Quantized<F, D> quantized(const Tensor<bfloat16, D>& x, History<D> history, bool with_transpose = true) {
  const std::int64_t rows = x.shape().rows();
  const std::int64_t columns = x.shape().back();
  Quantized<F, D> y{.codes = Tensor<F, D>({rows, columns}),
                    .transposed = with_transpose ? Tensor<F, D>({columns, rows}) : Tensor<F, D>(),
                    .scale = Tensor<float, D>({2})};
  if (history.amaxes.defined()) {
    y.scale = Tape::once([&] {
      ops::delayed_float8_scale<F>(x, history.amaxes, y.scale);
      return y.scale;
    });
    if (history.update && !Tape::repeats()) y.amax = Tensor<float, D>({1});
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

template <typename D>
struct Float8Linear {
  static constexpr std::string_view name = "float8_linear";
  static constexpr bool repeatable = false;
  Float8History<D> history;                 // forward takes those of x and weight; dy's is for backward
  Float8Operand<float8_e4m3, D> of_x = {};  // transposes that forward keeps for backward
  Float8Operand<float8_e4m3, D> of_weight = {};

  void forward(const auto& x, const auto& weight, const auto& bias, auto& y) {
    const bool has_backward = Tape::current() != nullptr;
    const auto x8 = quantized<float8_e4m3>(x, History<D>{std::move(history.x), history.update}, has_backward);
    const auto weight8 = quantized<float8_e4m3>(weight, History<D>{std::move(history.weight), history.update}, has_backward);
    ops::float8_matmul(as_it_is(x8), as_it_is(weight8), bias, y);
    of_x = transposed(x8);
    of_weight = transposed(weight8);
  }
  void backward(const auto& dy, const auto& dx, const auto& dweight, const auto& dbias) const {
    const auto dy8 = quantized<float8_e5m2>(dy, History<D>{history.dy, history.update});
    dweight.contribute([&](auto& out, bool accumulate) { ops::float8_matmul(transposed(dy8), of_x, {}, out, accumulate); });
    dbias.contribute([&](auto& out, bool accumulate) { ops::sum_rows(dy, out, accumulate); });
    dx.contribute([&](auto& out, bool accumulate) { ops::float8_matmul(as_it_is(dy8), of_weight, {}, out, accumulate); });
  }
  void describe(Attributes& to) const { to["scaling"] = std::string(history.dy.defined() ? "delayed" : "current"); }
};

}  // namespace

template <typename D>
Variable<bfloat16, D> float8_linear(const Variable<bfloat16, D>& x, const Variable<bfloat16, D, float>& weight,
                                    const Variable<float, D>& bias, const Float8History<D>& history) {
  const auto result = [&] {
    require_product("float8_linear", x.shape(), weight.shape());
    return Result<bfloat16, D>{with_last_dim(x.shape(), weight.shape()[0])};
  };
  return record(Float8Linear<D>{history}, result, x, weight, optional(bias));
}

template Variable<bfloat16, TRIREME_DEVICE> float8_linear(const Variable<bfloat16, TRIREME_DEVICE>&,
                                                          const Variable<bfloat16, TRIREME_DEVICE, float>&,
                                                          const Variable<float, TRIREME_DEVICE>&,
                                                          const Float8History<TRIREME_DEVICE>&);

}  // namespace trireme
