#include "trireme/autograd/operations/norm.hpp"

#include "autograd/operations/norm_weights.hpp"
#include "precision/instantiate.hpp"
#include "trireme/autograd/operations/array.hpp"
#include "trireme/autograd/operations/elementwise.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/elementwise/cast.hpp"
#include "trireme/ops/norm/norm.hpp"

namespace trireme {
namespace {

// The backward pass of y = norm(x + residual), which also returns the sum x + residual. `dsum` is the gradient of the returned
// sum, pass.dy that of y. Either is undefined if that result was not used.
template <typename T, typename D, typename A, typename Backward>
void contribute_to_addends(ops::NormBackward<T, D> pass, Tensor<A, D>& dsum, const Gradient<A, D>& dx,
                           const Gradient<T, D>& dresidual, const Gradient<A, D>& dweight, const Gradient<A, D>& dbias,
                           const Backward& backward) {
  // Adds the norm's gradient to dsum, which then is the gradient of both addends.
  Tensor<T, D> rounded;
  if constexpr (!std::same_as<T, A>) {
    if (dresidual.needed()) rounded = Tensor<T, D>(pass.x.shape());
  }
  if (pass.dy.defined()) {
    const bool accumulate = dsum.defined();
    if (!accumulate) dsum = Tensor<A, D>(pass.dy.shape());
    if (dsum.shares_storage()) dsum = dsum.clone();
    pass.dx = dsum;
    pass.accumulate_dx = accumulate;
    pass.dresidual = rounded;
    contribute_to_weights(pass, dweight, dbias, backward);
  } else if constexpr (!std::same_as<T, A>) {
    if (rounded.defined()) ops::cast(dsum, rounded);
  }
  dx.give(dsum);
  if constexpr (std::same_as<T, A>) {
    dresidual.give(std::move(dsum));
  } else {
    dresidual.give(std::move(rounded));
  }
}

constexpr auto layer_norm_backward = [](const auto& pass) { ops::layer_norm_backward(pass); };
constexpr auto rms_norm_backward = [](const auto& pass) { ops::rms_norm_backward(pass); };

struct LayerNorm {
  static constexpr std::string_view name = "layer_norm";
  double epsilon;

  template <typename T, typename D>
  void forward(const auto& x, const auto& weight, const auto& bias, const Tensor<T, D>& y, const auto& mean,
               const auto& rstd) const {
    ops::layer_norm<T, D>({.x = x, .weight = weight, .bias = bias, .epsilon = epsilon, .y = y, .mean = mean, .rstd = rstd});
  }
  template <typename T, typename D>
  void backward(const Tensor<T, D>& dy, const auto& x, const auto& weight, const auto& mean, const auto& rstd, const auto& dx,
                const auto& dweight, const auto& dbias) const {
    ops::NormBackward<T, D> pass{.x = x, .weight = weight, .mean = mean, .rstd = rstd, .dy = dy};
    contribute_to_all(pass, dx, dweight, dbias, layer_norm_backward);
  }
  void describe(Attributes& to) const { to["epsilon"] = epsilon; }
};

struct ResidualLayerNorm {
  static constexpr std::string_view name = "residual_layer_norm";
  double epsilon;

  template <typename T, typename D>
  void forward(const auto& x, const Tensor<T, D>& residual, const auto& weight, const auto& bias, const auto& x_sum,
               const Tensor<T, D>& y, const auto& mean, const auto& rstd) const {
    ops::layer_norm<T, D>({.x = x,
                           .residual = residual,
                           .weight = weight,
                           .bias = bias,
                           .epsilon = epsilon,
                           .x_sum = x_sum,
                           .y = y,
                           .mean = mean,
                           .rstd = rstd});
  }
  template <typename T, typename D>
  void backward(auto& dsum, const Tensor<T, D>& dy, const auto& weight, const auto& x_sum, const auto& mean, const auto& rstd,
                const auto& dx, const Gradient<T, D>& dresidual, const auto& dweight, const auto& dbias) const {
    contribute_to_addends<T, D>({.x = x_sum, .weight = weight, .mean = mean, .rstd = rstd, .dy = dy}, dsum, dx, dresidual,
                                dweight, dbias, layer_norm_backward);
  }
  void describe(Attributes& to) const { to["epsilon"] = epsilon; }
};

struct RmsNorm {
  static constexpr std::string_view name = "rms_norm";
  double epsilon;

  template <typename T, typename D>
  void forward(const auto& x, const auto& weight, const Tensor<T, D>& y, const auto& rstd) const {
    ops::rms_norm<T, D>({.x = x, .weight = weight, .epsilon = epsilon, .y = y, .rstd = rstd});
  }
  template <typename T, typename D, typename A>
  void backward(const Tensor<T, D>& dy, const auto& x, const auto& weight, const auto& rstd, const auto& dx,
                const Gradient<A, D>& dweight) const {
    ops::NormBackward<T, D> pass{.x = x, .weight = weight, .rstd = rstd, .dy = dy};
    contribute_to_all(pass, dx, dweight, Gradient<A, D>(), rms_norm_backward);
  }
  void describe(Attributes& to) const { to["epsilon"] = epsilon; }
};

struct ResidualRmsNorm {
  static constexpr std::string_view name = "residual_rms_norm";
  double epsilon;

  template <typename T, typename D>
  void forward(const auto& x, const Tensor<T, D>& residual, const auto& weight, const auto& x_sum, const Tensor<T, D>& y,
               const auto& rstd) const {
    ops::rms_norm<T, D>(
        {.x = x, .residual = residual, .weight = weight, .epsilon = epsilon, .x_sum = x_sum, .y = y, .rstd = rstd});
  }
  template <typename T, typename D>
  void backward(auto& dsum, const Tensor<T, D>& dy, const auto& weight, const auto& x_sum, const auto& rstd, const auto& dx,
                const Gradient<T, D>& dresidual, const auto& dweight) const {
    contribute_to_addends<T, D>({.x = x_sum, .weight = weight, .rstd = rstd, .dy = dy}, dsum, dx, dresidual, dweight, {},
                                rms_norm_backward);
  }
  void describe(Attributes& to) const { to["epsilon"] = epsilon; }
};

// Casts x to float. Keeps an undefined x undefined, so that the norm's own error names it.
template <typename T, typename D>
Variable<Accumulate<T>, D> floats_of(const Variable<T, D>& x) {
  return x.value().defined() ? cast<Accumulate<T>>(x) : Variable<Accumulate<T>, D>();
}

template <typename T, typename D, typename A = Accumulate<T>>
Variable<T, D> record_last_dim(const Variable<A, D>& x, const Variable<A, D>& weight, const Variable<A, D>& bias,
                               double epsilon) {
  const auto results = [&] {
    const Result<A, D> of_rows{{x.shape().rows()}};
    return std::tuple(Result<T, D>{x.shape()}, internal(of_rows), internal(of_rows));
  };
  return record(LayerNorm{epsilon}, results, kept(x), kept(optional(weight)), optional(bias));
}

// Joins the last `dims` dims of x, weight and bias into one.
template <typename T, typename D, typename A = Accumulate<T>>
Variable<T, D> record_layer_norm(const Variable<A, D>& x, const Variable<A, D>& weight, const Variable<A, D>& bias,
                                 double epsilon, int dims) {
  if (dims == 1 || !x.value().defined()) return record_last_dim<T, D>(x, weight, bias, epsilon);
  require(dims > 1 && dims <= x.shape().size(), "layer_norm: x {} has no last {} dims", x.shape(), dims);
  const auto all = x.shape().dims();
  const Shape normalized(all.last(static_cast<std::size_t>(dims)));
  const auto flat = [&](std::string_view name, const Variable<A, D>& operand) {
    if (!operand.value().defined()) return operand;
    require(operand.shape() == normalized, "layer_norm: {} has shape {}, but needs {}", name, operand.shape(), normalized);
    return reshape(operand, {normalized.numel()});
  };
  const Shape rows(all.first(all.size() - static_cast<std::size_t>(dims)));
  const Variable<A, D> flat_weight = flat("weight", weight);
  const Variable<A, D> flat_bias = flat("bias", bias);
  const Variable<A, D> flat_x = reshape(x, {rows.numel(), normalized.numel()});
  return reshape(record_last_dim<T, D>(flat_x, flat_weight, flat_bias, epsilon), x.shape());
}

template <typename T, typename D, typename A = Accumulate<T>>
Variable<T, D> record_rms_norm(const Variable<A, D>& x, const Variable<A, D>& weight, double epsilon) {
  const auto results = [&] { return std::tuple(Result<T, D>{x.shape()}, internal(Result<A, D>{{x.shape().rows()}})); };
  return record(RmsNorm{epsilon}, results, kept(x), kept(optional(weight)));
}

}  // namespace

template <typename T, typename D>
Variable<T, D> layer_norm(const Variable<T, D>& x, const Variable<Accumulate<T>, D>& weight,
                          const Variable<Accumulate<T>, D>& bias, double epsilon, int dims) {
  return record_layer_norm<T, D>(floats_of(x), weight, bias, epsilon, dims);
}
template <typename T, typename D>
requires(!std::same_as<T, Accumulate<T>>) Variable<T, D> layer_norm(const Variable<Accumulate<T>, D>& x,
                                                                    const Variable<Accumulate<T>, D>& weight,
                                                                    const Variable<Accumulate<T>, D>& bias, double epsilon,
                                                                    int dims) {
  return record_layer_norm<T, D>(x, weight, bias, epsilon, dims);
}
template <typename T, typename D>
std::pair<Variable<Accumulate<T>, D>, Variable<T, D>> residual_layer_norm(const Variable<Accumulate<T>, D>& x,
                                                                          const Variable<T, D>& residual,
                                                                          const Variable<Accumulate<T>, D>& weight,
                                                                          const Variable<Accumulate<T>, D>& bias,
                                                                          double epsilon) {
  using A = Accumulate<T>;
  const auto results = [&] {
    const Result<A, D> of_rows{{x.shape().rows()}};
    return std::tuple(kept(Result<A, D>{x.shape()}), Result<T, D>{x.shape()}, internal(of_rows), internal(of_rows));
  };
  auto [sum, y] = record(ResidualLayerNorm{epsilon}, results, x, residual, kept(optional(weight)), optional(bias));
  return {std::move(sum), std::move(y)};
}

template <typename T, typename D>
Variable<T, D> rms_norm(const Variable<T, D>& x, const Variable<Accumulate<T>, D>& weight, double epsilon) {
  return record_rms_norm<T, D>(floats_of(x), weight, epsilon);
}
template <typename T, typename D>
requires(!std::same_as<T, Accumulate<T>>) Variable<T, D> rms_norm(const Variable<Accumulate<T>, D>& x,
                                                                  const Variable<Accumulate<T>, D>& weight, double epsilon) {
  return record_rms_norm<T, D>(x, weight, epsilon);
}
template <typename T, typename D>
std::pair<Variable<Accumulate<T>, D>, Variable<T, D>> residual_rms_norm(const Variable<Accumulate<T>, D>& x,
                                                                        const Variable<T, D>& residual,
                                                                        const Variable<Accumulate<T>, D>& weight,
                                                                        double epsilon) {
  using A = Accumulate<T>;
  const auto results = [&] {
    return std::tuple(kept(Result<A, D>{x.shape()}), Result<T, D>{x.shape()}, internal(Result<A, D>{{x.shape().rows()}}));
  };
  auto [sum, y] = record(ResidualRmsNorm{epsilon}, results, x, residual, kept(optional(weight)));
  return {std::move(sum), std::move(y)};
}

#define TRIREME_OVERLOADS(T, D)                                                                                  \
  template Variable<T, D> layer_norm<T, D>(const Variable<Accumulate<T>, D>&, const Variable<Accumulate<T>, D>&, \
                                           const Variable<Accumulate<T>, D>&, double, int);                      \
  template Variable<T, D> rms_norm<T, D>(const Variable<Accumulate<T>, D>&, const Variable<Accumulate<T>, D>&, double);
TRIREME_EACH(FLOATS, TRIREME_OVERLOADS, TRIREME_DEVICE)
#undef TRIREME_OVERLOADS
TRIREME_INSTANTIATE(FLOATS, residual_layer_norm, TRIREME_DEVICE)
TRIREME_INSTANTIATE(FLOATS, residual_rms_norm, TRIREME_DEVICE)

#define TRIREME_OVERLOADS(T, D)                                                                                           \
  template Variable<T, D> layer_norm(const Variable<T, D>&, const Variable<float, D>&, const Variable<float, D>&, double, \
                                     int);                                                                                \
  template Variable<T, D> rms_norm(const Variable<T, D>&, const Variable<float, D>&, double);
TRIREME_EACH(HALVES, TRIREME_OVERLOADS, TRIREME_DEVICE)
#undef TRIREME_OVERLOADS

}  // namespace trireme
