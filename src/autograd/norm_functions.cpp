#include "autograd/norm_weights.hpp"
#include "trireme/autograd/functions.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/elementwise/cast.hpp"
#include "trireme/ops/norm/norm.hpp"

namespace trireme {
namespace {

struct LayerNorm {
  static constexpr const char* name = "layer_norm";
  static constexpr const char* name_with_residual = "residual_layer_norm";
  static constexpr bool has_mean = true;
  static void forward(const auto& pass) { ops::layer_norm(pass); }
  static void backward(const auto& pass) { ops::layer_norm_backward(pass); }
};
struct RmsNorm {
  static constexpr const char* name = "rms_norm";
  static constexpr const char* name_with_residual = "residual_rms_norm";
  static constexpr bool has_mean = false;
  static void forward(const auto& pass) { ops::rms_norm(pass); }
  static void backward(const auto& pass) { ops::rms_norm_backward(pass); }
};

// The gradients of weight and bias, and dx into a given tensor.
template <typename Norm, typename T, typename D>
struct NormGradients {
  using A = Accumulate<T>;
  ops::NormBackward<T, D> pass;
  Gradient<A, D> dweight;
  Gradient<A, D> dbias;

  void run(const Tensor<T, D>& dy, const Tensor<A, D>& dx, bool accumulate) {
    pass.dy = dy;
    pass.dx = dx;
    pass.accumulate_dx = accumulate;
    contribute_to_weights(pass, dweight, dbias, [](const auto& full) { Norm::backward(full); });
  }
};

template <typename A, typename D>
struct NormWeights {
  Variable<A, D> weight;
  Variable<A, D> bias = {};
  double epsilon = 0;
};

template <typename Norm, typename T, typename D, typename A = Accumulate<T>>
std::pair<ops::NormForward<T, D>, NormGradients<Norm, T, D>> run_norm(const Tensor<A, D>& x, const Tensor<T, D>& residual,
                                                                      const NormWeights<A, D>& weights) {
  const Shape rows{x.shape().rows()};
  ops::NormForward<T, D> forward{.x = x,
                                 .residual = residual,
                                 .weight = weights.weight.value(),
                                 .bias = weights.bias.value(),
                                 .epsilon = weights.epsilon,
                                 .x_sum = residual.defined() ? Tensor<A, D>(x.shape()) : Tensor<A, D>(),
                                 .y = Tensor<T, D>(x.shape()),
                                 .mean = Norm::has_mean ? Tensor<A, D>(rows) : Tensor<A, D>(),
                                 .rstd = Tensor<A, D>(rows)};
  Norm::forward(forward);
  NormGradients<Norm, T, D> gradients{.pass = {.x = residual.defined() ? forward.x_sum : x,
                                               .weight = forward.weight,
                                               .mean = forward.mean,
                                               .rstd = forward.rstd},
                                      .dweight = weights.weight.gradient(),
                                      .dbias = weights.bias.gradient()};
  return {std::move(forward), std::move(gradients)};
}

template <typename Norm, typename T, typename D, typename A = Accumulate<T>>
Variable<T, D> record_norm(const Variable<A, D>& x, const NormWeights<A, D>& weights) {
  auto [forward, gradients] = run_norm<Norm, T, D>(x.value(), {}, weights);
  return record(Norm::name, forward.y, {x.slot(), weights.weight.slot(), weights.bias.slot()},
                [gradients = std::move(gradients), dx = x.gradient()](const Tensor<T, D>& dy) mutable {
                  if (!dx.needed()) return gradients.run(dy, Tensor<A, D>(dy.shape()), false);
                  dx.contribute([&](Tensor<A, D>& out, bool accumulate) { gradients.run(dy, out, accumulate); });
                });
}

template <typename Norm, typename T, typename D, typename A = Accumulate<T>>
std::pair<Variable<A, D>, Variable<T, D>> record_residual_norm(const Variable<A, D>& x, const Variable<T, D>& residual,
                                                               const NormWeights<A, D>& weights) {
  auto [forward, gradients] = run_norm<Norm, T, D>(x.value(), residual.value(), weights);
  return record_pair(Norm::name_with_residual, forward.x_sum, forward.y,
                     {x.slot(), residual.slot(), weights.weight.slot(), weights.bias.slot()},
                     [gradients = std::move(gradients), dx = x.gradient(), dresidual = residual.gradient()](
                         Tensor<A, D> dsum, const Tensor<T, D>& dy) mutable {
                       // The gradient of the sum is complete when the norm's is added to it; it then belongs to both addends.
                       Tensor<T, D> rounded;
                       if constexpr (!std::same_as<T, A>) {
                         if (dresidual.needed()) rounded = Tensor<T, D>(gradients.pass.x.shape());
                       }
                       if (dy.defined()) {
                         const bool accumulate = dsum.defined();
                         if (!accumulate) dsum = Tensor<A, D>(dy.shape());
                         if (dsum.shares_storage()) dsum = dsum.clone();
                         gradients.pass.dresidual = rounded;
                         gradients.run(dy, dsum, accumulate);
                         gradients.pass.dresidual = {};
                       } else if constexpr (!std::same_as<T, A>) {
                         if (rounded.defined()) ops::cast(dsum, rounded);
                       }
                       dx.give(dsum);
                       if constexpr (std::same_as<T, A>) {
                         dresidual.give(std::move(dsum));
                       } else {
                         dresidual.give(std::move(rounded));
                       }
                     });
}

// The last dims of x as one, and so those of weight and bias.
template <typename T, typename D, typename A = Accumulate<T>>
Variable<T, D> record_layer_norm(const Variable<A, D>& x, const NormWeights<A, D>& weights, int dims) {
  require_operands("layer_norm", x, optional(weights.weight), optional(weights.bias));
  if (dims == 1) return record_norm<LayerNorm, T, D>(x, weights);
  require(dims > 1 && dims <= x.shape().size(), "layer_norm: x {} has no last {} dims", x.shape(), dims);
  const auto all = x.shape().dims();
  const Shape normalized(all.last(static_cast<std::size_t>(dims)));
  const auto flat = [&](std::string_view name, const Variable<A, D>& operand) {
    if (!operand.value().defined()) return operand;
    require(operand.shape() == normalized, "layer_norm: {} has shape {}, but needs {}", name, operand.shape(), normalized);
    return reshape(operand, {normalized.numel()});
  };
  const Shape rows(all.first(all.size() - static_cast<std::size_t>(dims)));
  const NormWeights<A, D> of_rows{flat("weight", weights.weight), flat("bias", weights.bias), weights.epsilon};
  return reshape(record_norm<LayerNorm, T, D>(reshape(x, {rows.numel(), normalized.numel()}), of_rows), x.shape());
}

}  // namespace

template <typename T, typename D>
Variable<T, D> layer_norm(const Variable<T, D>& x, const Variable<T, D>& weight, const Variable<T, D>& bias, double epsilon,
                          int dims) {
  return record_layer_norm<T, D>(x, {weight, bias, epsilon}, dims);
}
template <typename T, typename D>
requires(!std::same_as<T, Accumulate<T>>) Variable<T, D> layer_norm(const Variable<Accumulate<T>, D>& x,
                                                                    const Variable<Accumulate<T>, D>& weight,
                                                                    const Variable<Accumulate<T>, D>& bias, double epsilon,
                                                                    int dims) {
  return record_layer_norm<T, D>(x, {weight, bias, epsilon}, dims);
}
template <typename T, typename D>
std::pair<Variable<Accumulate<T>, D>, Variable<T, D>> residual_layer_norm(const Variable<Accumulate<T>, D>& x,
                                                                          const Variable<T, D>& residual,
                                                                          const Variable<Accumulate<T>, D>& weight,
                                                                          const Variable<Accumulate<T>, D>& bias,
                                                                          double epsilon) {
  require_operands("residual_layer_norm", x, residual, optional(weight), optional(bias));
  return record_residual_norm<LayerNorm, T, D>(x, residual, {weight, bias, epsilon});
}

template <typename T, typename D>
Variable<T, D> rms_norm(const Variable<T, D>& x, const Variable<T, D>& weight, double epsilon) {
  require_operands("rms_norm", x, optional(weight));
  return record_norm<RmsNorm, T, D>(x, {.weight = weight, .epsilon = epsilon});
}
template <typename T, typename D>
requires(!std::same_as<T, Accumulate<T>>) Variable<T, D> rms_norm(const Variable<Accumulate<T>, D>& x,
                                                                  const Variable<Accumulate<T>, D>& weight, double epsilon) {
  require_operands("rms_norm", x, optional(weight));
  return record_norm<RmsNorm, T, D>(x, {.weight = weight, .epsilon = epsilon});
}
template <typename T, typename D>
std::pair<Variable<Accumulate<T>, D>, Variable<T, D>> residual_rms_norm(const Variable<Accumulate<T>, D>& x,
                                                                        const Variable<T, D>& residual,
                                                                        const Variable<Accumulate<T>, D>& weight,
                                                                        double epsilon) {
  require_operands("residual_rms_norm", x, residual, optional(weight));
  return record_residual_norm<RmsNorm, T, D>(x, residual, {.weight = weight, .epsilon = epsilon});
}

#define TRIREME_INSTANTIATE(T, A)                                                                                      \
  template Variable<T, TRIREME_DEVICE> layer_norm<T, TRIREME_DEVICE>(const Variable<A, TRIREME_DEVICE>&,               \
                                                                     const Variable<A, TRIREME_DEVICE>&,               \
                                                                     const Variable<A, TRIREME_DEVICE>&, double, int); \
  template Variable<T, TRIREME_DEVICE> rms_norm<T, TRIREME_DEVICE>(const Variable<A, TRIREME_DEVICE>&,                 \
                                                                   const Variable<A, TRIREME_DEVICE>&, double);        \
  template std::pair<Variable<A, TRIREME_DEVICE>, Variable<T, TRIREME_DEVICE>> residual_layer_norm(                    \
      const Variable<A, TRIREME_DEVICE>&, const Variable<T, TRIREME_DEVICE>&, const Variable<A, TRIREME_DEVICE>&,      \
      const Variable<A, TRIREME_DEVICE>&, double);                                                                     \
  template std::pair<Variable<A, TRIREME_DEVICE>, Variable<T, TRIREME_DEVICE>> residual_rms_norm(                      \
      const Variable<A, TRIREME_DEVICE>&, const Variable<T, TRIREME_DEVICE>&, const Variable<A, TRIREME_DEVICE>&, double)
TRIREME_INSTANTIATE(float, float);
TRIREME_INSTANTIATE(double, double);
TRIREME_INSTANTIATE(bfloat16, float);
TRIREME_INSTANTIATE(float16, float);
#undef TRIREME_INSTANTIATE

}  // namespace trireme
