#include "trireme/autograd/functions.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/ops/attention.hpp"
#include "trireme/ops/matmul.hpp"
#include "trireme/ops/norm.hpp"
#include "trireme/ops/reduce.hpp"

namespace trireme {
namespace {

Shape with_last_dim(const Shape& shape, std::int64_t last) {
  std::array<std::int64_t, Shape::max_dims> dims{};
  std::copy(shape.dims().begin(), shape.dims().end(), dims.begin());
  dims[static_cast<std::size_t>(shape.size() - 1)] = last;
  return Shape(std::span(dims.data(), shape.dims().size()));
}

}  // namespace

template <typename T, typename D>
Variable<T, D> linear(const Variable<T, D>& x, const Variable<T, D>& weight, const Variable<T, D>& bias) {
  require(weight.shape().size() == 2 && x.shape().size() >= 1 && x.shape().back() == weight.shape()[1],
          "linear: x {} does not fit a weight {} of [out, in]", x.shape().str(), weight.shape().str());
  Tensor<T, D> y(with_last_dim(x.shape(), weight.shape()[0]));
  ops::linear(x.value(), weight.value(), bias.value(), y);
  return record("linear", std::move(y), {x.slot(), weight.slot(), bias.slot()},
                [x = x, weight = weight, dbias = bias.gradient()](const Tensor<T, D>& dy) {
                  weight.gradient().contribute([&](Tensor<T, D>& dw, bool accumulate) {
                    ops::matmul(dy, x.value(), dw, {.transpose_a = true, .accumulate = accumulate});
                  });
                  dbias.contribute([&](Tensor<T, D>& db, bool accumulate) { ops::sum_rows(dy, db, accumulate); });
                  x.gradient().contribute([&](Tensor<T, D>& dx, bool accumulate) {
                    ops::matmul(dy, weight.value(), dx, {.accumulate = accumulate});
                  });
                });
}

namespace {

// What both norms share: gradients of weight and bias, and dx into a given tensor.
template <typename T, typename D>
struct NormBackward {
  ops::LayerNormBackward<T, D> pass;
  Gradient<T, D> dweight;
  Gradient<T, D> dbias;

  void run(const Tensor<T, D>& dy, Tensor<T, D>& dx, bool accumulate) {
    pass.dy = dy;
    pass.dx = dx;
    pass.accumulate_dx = accumulate;
    const auto run_pass = [this] { ops::layer_norm_backward(pass); };
    const auto with_bias = [&] {
      if (!dbias.needed()) return run_pass();
      dbias.contribute([&](Tensor<T, D>& db, bool add) {
        pass.dbias = db;
        pass.accumulate_dbias = add;
        run_pass();
      });
    };
    if (!dweight.needed()) return with_bias();
    dweight.contribute([&](Tensor<T, D>& dw, bool add) {
      pass.dweight = dw;
      pass.accumulate_dweight = add;
      with_bias();
    });
  }
};

template <typename T, typename D>
std::pair<ops::LayerNormForward<T, D>, NormBackward<T, D>> run_layer_norm(const Tensor<T, D>& x, const Tensor<T, D>& residual,
                                                                          const Variable<T, D>& weight,
                                                                          const Variable<T, D>& bias, double epsilon) {
  const Shape rows{x.shape().rows()};
  ops::LayerNormForward<T, D> forward{.x = x,
                                      .residual = residual,
                                      .weight = weight.value(),
                                      .bias = bias.value(),
                                      .epsilon = epsilon,
                                      .x_sum = residual.defined() ? Tensor<T, D>(x.shape()) : Tensor<T, D>(),
                                      .y = Tensor<T, D>(x.shape()),
                                      .mean = Tensor<T, D>(rows),
                                      .rstd = Tensor<T, D>(rows)};
  ops::layer_norm(forward);
  NormBackward<T, D> backward{.pass = {.x = residual.defined() ? forward.x_sum : x,
                                       .weight = weight.value(),
                                       .mean = forward.mean,
                                       .rstd = forward.rstd},
                              .dweight = weight.gradient(),
                              .dbias = bias.gradient()};
  return {std::move(forward), std::move(backward)};
}

}  // namespace

template <typename T, typename D>
Variable<T, D> layer_norm(const Variable<T, D>& x, const Variable<T, D>& weight, const Variable<T, D>& bias, double epsilon) {
  auto [forward, backward] = run_layer_norm<T, D>(x.value(), {}, weight, bias, epsilon);
  return record("layer_norm", forward.y, {x.slot(), weight.slot(), bias.slot()},
                [backward = std::move(backward), dx = x.gradient()](const Tensor<T, D>& dy) mutable {
                  if (!dx.needed()) {
                    Tensor<T, D> unused(dy.shape());
                    backward.run(dy, unused, false);
                    return;
                  }
                  dx.contribute([&](Tensor<T, D>& out, bool accumulate) { backward.run(dy, out, accumulate); });
                });
}

template <typename T, typename D>
std::pair<Variable<T, D>, Variable<T, D>> residual_layer_norm(const Variable<T, D>& x, const Variable<T, D>& residual,
                                                              const Variable<T, D>& weight, const Variable<T, D>& bias,
                                                              double epsilon) {
  auto [forward, backward] = run_layer_norm(x.value(), residual.value(), weight, bias, epsilon);
  return record_pair("residual_layer_norm", forward.x_sum, forward.y, {x.slot(), residual.slot(), weight.slot(), bias.slot()},
                     [backward = std::move(backward), dx = x.gradient(), dresidual = residual.gradient()](
                         Tensor<T, D> dsum, const Tensor<T, D>& dy) mutable {
                       // The gradient of the sum is complete when the norm's is added to it; it then belongs to both addends.
                       if (dy.defined()) {
                         const bool accumulate = dsum.defined();
                         if (!accumulate) dsum = Tensor<T, D>(dy.shape());
                         if (dsum.shares_storage()) dsum = dsum.clone();
                         backward.run(dy, dsum, accumulate);
                       }
                       dx.give(dsum);
                       dresidual.give(std::move(dsum));
                     });
}

template <typename T, typename D>
Variable<T, D> causal_attention(const Variable<T, D>& qkv, int heads) {
  require(qkv.shape().size() == 3 && heads > 0 && qkv.shape()[2] % (3 * heads) == 0,
          "causal_attention: qkv {} is not [batch, time, 3 * width] with a width that {} heads divide", qkv.shape().str(),
          heads);
  Tensor<T, D> out({qkv.shape()[0], qkv.shape()[1], qkv.shape()[2] / 3});
  Tensor<T, D> log_sum_exp({qkv.shape()[0], heads, qkv.shape()[1]});
  ops::causal_attention(qkv.value(), heads, out, log_sum_exp);
  return record("causal_attention", out, {qkv.slot()},
                [qkv = qkv.value(), dqkv = qkv.gradient(), heads, out, log_sum_exp](const Tensor<T, D>& dout) {
                  Tensor<T, D> contribution(qkv.shape());
                  ops::causal_attention_backward(qkv, heads, out, log_sum_exp, dout, contribution);
                  dqkv.give(std::move(contribution));
                });
}

#define TRIREME_INSTANTIATE(T)                                                                                             \
  template Variable<T, Cpu> linear(const Variable<T, Cpu>&, const Variable<T, Cpu>&, const Variable<T, Cpu>&);             \
  template Variable<T, Cpu> layer_norm(const Variable<T, Cpu>&, const Variable<T, Cpu>&, const Variable<T, Cpu>&, double); \
  template std::pair<Variable<T, Cpu>, Variable<T, Cpu>> residual_layer_norm(                                              \
      const Variable<T, Cpu>&, const Variable<T, Cpu>&, const Variable<T, Cpu>&, const Variable<T, Cpu>&, double);         \
  template Variable<T, Cpu> causal_attention(const Variable<T, Cpu>&, int)
TRIREME_INSTANTIATE(float);
TRIREME_INSTANTIATE(double);

}  // namespace trireme
