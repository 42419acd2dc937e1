#include "trireme/autograd/functions.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/cast.hpp"
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
Variable<T, D> linear(const Variable<T, D>& x, const Variable<T, D, Accumulate<T>>& weight,
                      const Variable<Accumulate<T>, D>& bias) {
  using A = Accumulate<T>;
  require(weight.shape().size() == 2 && x.shape().size() >= 1 && x.shape().back() == weight.shape()[1],
          "linear: x {} does not fit a weight {} of [out, in]", x.shape().str(), weight.shape().str());
  Tensor<T, D> y(with_last_dim(x.shape(), weight.shape()[0]));
  ops::linear(x.value(), weight.value(), bias.value(), y);
  return record("linear", std::move(y), {x.slot(), weight.slot(), bias.slot()},
                [x = x, weight = weight, dbias = bias.gradient()](const Tensor<T, D>& dy) {
                  weight.gradient().contribute([&](Tensor<A, D>& dw, bool accumulate) {
                    ops::matmul(dy, x.value(), dw, {.transpose_a = true, .accumulate = accumulate});
                  });
                  dbias.contribute([&](Tensor<A, D>& db, bool accumulate) { ops::sum_rows(dy, db, accumulate); });
                  x.gradient().contribute([&](Tensor<T, D>& dx, bool accumulate) {
                    ops::matmul(dy, weight.value(), dx, {.accumulate = accumulate});
                  });
                });
}

namespace {

// What both norms share: gradients of weight and bias, and dx into a given tensor.
template <typename T, typename D>
struct NormBackward {
  using A = Accumulate<T>;
  ops::LayerNormBackward<T, D> pass;
  Gradient<A, D> dweight;
  Gradient<A, D> dbias;

  void run(const Tensor<T, D>& dy, Tensor<A, D>& dx, bool accumulate) {
    pass.dy = dy;
    pass.dx = dx;
    pass.accumulate_dx = accumulate;
    const auto run_pass = [this] { ops::layer_norm_backward(pass); };
    const auto with_bias = [&] {
      if (!dbias.needed()) return run_pass();
      dbias.contribute([&](Tensor<A, D>& db, bool add) {
        pass.dbias = db;
        pass.accumulate_dbias = add;
        run_pass();
      });
    };
    if (!dweight.needed()) return with_bias();
    dweight.contribute([&](Tensor<A, D>& dw, bool add) {
      pass.dweight = dw;
      pass.accumulate_dweight = add;
      with_bias();
    });
  }
};

template <typename T, typename D, typename A = Accumulate<T>>
std::pair<ops::LayerNormForward<T, D>, NormBackward<T, D>> run_layer_norm(const Tensor<A, D>& x, const Tensor<T, D>& residual,
                                                                          const Variable<A, D>& weight,
                                                                          const Variable<A, D>& bias, double epsilon) {
  const Shape rows{x.shape().rows()};
  ops::LayerNormForward<T, D> forward{.x = x,
                                      .residual = residual,
                                      .weight = weight.value(),
                                      .bias = bias.value(),
                                      .epsilon = epsilon,
                                      .x_sum = residual.defined() ? Tensor<A, D>(x.shape()) : Tensor<A, D>(),
                                      .y = Tensor<T, D>(x.shape()),
                                      .mean = Tensor<A, D>(rows),
                                      .rstd = Tensor<A, D>(rows)};
  ops::layer_norm(forward);
  NormBackward<T, D> backward{.pass = {.x = residual.defined() ? forward.x_sum : x,
                                       .weight = weight.value(),
                                       .mean = forward.mean,
                                       .rstd = forward.rstd},
                              .dweight = weight.gradient(),
                              .dbias = bias.gradient()};
  return {std::move(forward), std::move(backward)};
}

template <typename T, typename D, typename A = Accumulate<T>>
Variable<T, D> record_layer_norm(const Variable<A, D>& x, const Variable<A, D>& weight, const Variable<A, D>& bias,
                                 double epsilon) {
  auto [forward, backward] = run_layer_norm<T, D>(x.value(), {}, weight, bias, epsilon);
  return record("layer_norm", forward.y, {x.slot(), weight.slot(), bias.slot()},
                [backward = std::move(backward), dx = x.gradient()](const Tensor<T, D>& dy) mutable {
                  if (!dx.needed()) {
                    Tensor<A, D> unused(dy.shape());
                    backward.run(dy, unused, false);
                    return;
                  }
                  dx.contribute([&](Tensor<A, D>& out, bool accumulate) { backward.run(dy, out, accumulate); });
                });
}

}  // namespace

template <typename T, typename D>
Variable<T, D> layer_norm(const Variable<T, D>& x, const Variable<T, D>& weight, const Variable<T, D>& bias, double epsilon) {
  return record_layer_norm<T, D>(x, weight, bias, epsilon);
}

template <typename T, typename D>
requires(!std::same_as<T, Accumulate<T>>) Variable<T, D> layer_norm(const Variable<Accumulate<T>, D>& x,
                                                                    const Variable<Accumulate<T>, D>& weight,
                                                                    const Variable<Accumulate<T>, D>& bias, double epsilon) {
  return record_layer_norm<T, D>(x, weight, bias, epsilon);
}

template <typename T, typename D>
std::pair<Variable<Accumulate<T>, D>, Variable<T, D>> residual_layer_norm(const Variable<Accumulate<T>, D>& x,
                                                                          const Variable<T, D>& residual,
                                                                          const Variable<Accumulate<T>, D>& weight,
                                                                          const Variable<Accumulate<T>, D>& bias,
                                                                          double epsilon) {
  using A = Accumulate<T>;
  auto [forward, backward] = run_layer_norm<T, D>(x.value(), residual.value(), weight, bias, epsilon);
  return record_pair("residual_layer_norm", forward.x_sum, forward.y, {x.slot(), residual.slot(), weight.slot(), bias.slot()},
                     [backward = std::move(backward), dx = x.gradient(), dresidual = residual.gradient()](
                         Tensor<A, D> dsum, const Tensor<T, D>& dy) mutable {
                       // The gradient of the sum is complete when the norm's is added to it; it then belongs to both addends.
                       Tensor<T, D> rounded;
                       if constexpr (!std::same_as<T, A>) {
                         if (dresidual.needed()) rounded = Tensor<T, D>(backward.pass.x.shape());
                       }
                       if (dy.defined()) {
                         const bool accumulate = dsum.defined();
                         if (!accumulate) dsum = Tensor<A, D>(dy.shape());
                         if (dsum.shares_storage()) dsum = dsum.clone();
                         backward.pass.dresidual = rounded;
                         backward.run(dy, dsum, accumulate);
                         backward.pass.dresidual = {};
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

#define TRIREME_INSTANTIATE(T, A)                                                                                         \
  template Variable<T, Cpu> linear(const Variable<T, Cpu>&, const Variable<T, Cpu, A>&, const Variable<A, Cpu>&);         \
  template Variable<T, Cpu> layer_norm<T, Cpu>(const Variable<A, Cpu>&, const Variable<A, Cpu>&, const Variable<A, Cpu>&, \
                                               double);                                                                   \
  template std::pair<Variable<A, Cpu>, Variable<T, Cpu>> residual_layer_norm(                                             \
      const Variable<A, Cpu>&, const Variable<T, Cpu>&, const Variable<A, Cpu>&, const Variable<A, Cpu>&, double)
TRIREME_INSTANTIATE(float, float);
TRIREME_INSTANTIATE(double, double);
TRIREME_INSTANTIATE(bfloat16, float);
TRIREME_INSTANTIATE(float16, float);

}  // namespace trireme
