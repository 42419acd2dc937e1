#include "trireme/autograd/functions.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/ops/rms_norm.hpp"

namespace trireme {
namespace {

template <typename T, typename D>
struct Backward {
  ops::RmsNormBackward<T, D> pass;
  Gradient<T, D> dweight;

  void run(const Tensor<T, D>& dy, const Tensor<T, D>& dx, bool accumulate) {
    pass.dy = dy;
    pass.dx = dx;
    pass.accumulate_dx = accumulate;
    if (!dweight.needed()) return ops::rms_norm_backward(pass);
    dweight.contribute([&](Tensor<T, D>& dw, bool add) {
      pass.dweight = dw;
      pass.accumulate_dweight = add;
      ops::rms_norm_backward(pass);
    });
  }
};

template <typename T, typename D>
std::pair<ops::RmsNormForward<T, D>, Backward<T, D>> forward(const Tensor<T, D>& x, const Tensor<T, D>& residual,
                                                             const Variable<T, D>& weight, double epsilon) {
  ops::RmsNormForward<T, D> pass{.x = x,
                                 .residual = residual,
                                 .weight = weight.value(),
                                 .epsilon = epsilon,
                                 .x_sum = residual.defined() ? Tensor<T, D>(x.shape()) : Tensor<T, D>(),
                                 .y = Tensor<T, D>(x.shape()),
                                 .rstd = Tensor<T, D>({x.shape().rows()})};
  ops::rms_norm(pass);
  Backward<T, D> backward{.pass = {.x = residual.defined() ? pass.x_sum : x, .weight = weight.value(), .rstd = pass.rstd},
                          .dweight = weight.gradient()};
  return {std::move(pass), std::move(backward)};
}

}  // namespace

template <typename T, typename D>
Variable<T, D> rms_norm(const Variable<T, D>& x, const Variable<T, D>& weight, double epsilon) {
  auto [pass, backward] = forward<T, D>(x.value(), {}, weight, epsilon);
  return record("rms_norm", pass.y, {x.slot(), weight.slot()},
                [backward = std::move(backward), dx = x.gradient()](const Tensor<T, D>& dy) mutable {
                  if (!dx.needed()) return backward.run(dy, Tensor<T, D>(dy.shape()), false);
                  dx.contribute([&](Tensor<T, D>& out, bool accumulate) { backward.run(dy, out, accumulate); });
                });
}

template <typename T, typename D>
std::pair<Variable<T, D>, Variable<T, D>> residual_rms_norm(const Variable<T, D>& x, const Variable<T, D>& residual,
                                                            const Variable<T, D>& weight, double epsilon) {
  auto [pass, backward] = forward(x.value(), residual.value(), weight, epsilon);
  return record_pair("residual_rms_norm", pass.x_sum, pass.y, {x.slot(), residual.slot(), weight.slot()},
                     [backward = std::move(backward), dx = x.gradient(), dresidual = residual.gradient()](
                         Tensor<T, D> dsum, const Tensor<T, D>& dy) mutable {
                       // As in residual_layer_norm: the finished gradient of the sum belongs to both addends.
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

#define TRIREME_INSTANTIATE(T)                                                                                               \
  template Variable<T, Cpu> rms_norm(const Variable<T, Cpu>&, const Variable<T, Cpu>&, double);                              \
  template std::pair<Variable<T, Cpu>, Variable<T, Cpu>> residual_rms_norm(const Variable<T, Cpu>&, const Variable<T, Cpu>&, \
                                                                           const Variable<T, Cpu>&, double)
TRIREME_INSTANTIATE(float);
TRIREME_INSTANTIATE(double);

}  // namespace trireme
