#include "trireme/autograd/functions.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/elementwise/cast.hpp"
#include "trireme/ops/elementwise/full.hpp"
#include "trireme/ops/loss/elementwise_loss.hpp"
#include "trireme/ops/loss/loss.hpp"
#include "trireme/ops/reduce/softmax.hpp"

namespace trireme {
namespace {

template <typename T, typename D>
void require_targets(const Variable<T, D>& logits, const Tensor<std::int32_t, D>& targets) {
  require(logits.shape().size() > 0 && targets.numel() == logits.shape().rows(), "cross_entropy: {} targets for logits {}",
          targets.numel(), logits.shape());
}

template <typename T, typename D, typename A = Accumulate<T>>
Variable<A, D> elementwise_sum(ops::ElementwiseLoss kind, const Variable<T, D>& x, const Tensor<A, D>& target,
                               double positive_weight = 1) {
  const Scalar<double, D> sum = ops::elementwise_loss(kind, x.value(), target, positive_weight);
  return record("elementwise_loss", ops::full<A>({}, sum), {x.slot()},
                [kind, target, positive_weight, value = x.value(), dx = x.gradient()](const Tensor<A, D>& dy) {
                  dx.contribute([&](Tensor<T, D>& out, bool accumulate) {
                    ops::elementwise_loss_backward(kind, value, target, Scalar<A, D>(dy), out, accumulate, positive_weight);
                  });
                });
}

}  // namespace

template <typename T, typename D>
Loss<Accumulate<T>, D> cross_entropy(const Variable<T, D>& logits, const Tensor<std::int32_t, D>& targets,
                                     const ops::CrossEntropyOptions<Accumulate<T>, D>& options) {
  require_operands("cross_entropy", logits, targets, optional(options.class_weight));
  require_targets(logits, targets);
  using A = Accumulate<T>;
  Tensor<A, D> log_sum_exp({targets.numel()});
  const ops::CrossEntropyResult<D> result = ops::cross_entropy(logits.value(), targets, log_sum_exp, options);
  Variable<A, D> sum =
      record("cross_entropy", ops::full<A>({}, result.sum), {logits.slot()},
             [value = logits.value(), dlogits = logits.gradient(), targets, log_sum_exp, options](const Tensor<A, D>& dy) {
               // The logits are rarely needed again: their gradient takes their place.
               Tensor<T, D> gradient = value.shares_storage() ? Tensor<T, D>(value.shape()) : value;
               ops::cross_entropy_backward(value, targets, log_sum_exp, Scalar<A, D>(dy), gradient, options);
               dlogits.give(std::move(gradient));
             });
  return {.sum = std::move(sum), .kept = result.kept, .count = targets.numel()};
}

template <typename T, typename D>
Variable<Accumulate<T>, D> cross_entropy_rows(const Variable<T, D>& logits, const Tensor<std::int32_t, D>& targets,
                                              const ops::CrossEntropyOptions<Accumulate<T>, D>& options) {
  require_operands("cross_entropy_rows", logits, targets, optional(options.class_weight));
  require_targets(logits, targets);
  using A = Accumulate<T>;
  Tensor<A, D> log_sum_exp({targets.numel()});
  Tensor<A, D> losses(targets.shape());
  ops::cross_entropy(logits.value(), targets, log_sum_exp, options);
  ops::cross_entropy_rows(logits.value(), targets, log_sum_exp, losses, options);
  return record("cross_entropy_rows", std::move(losses), {logits.slot()},
                [value = logits.value(), dlogits = logits.gradient(), targets, log_sum_exp, options](const Tensor<A, D>& dy) {
                  Tensor<T, D> gradient(value.shape());
                  ops::cross_entropy_rows_backward(value, targets, log_sum_exp, dy, gradient, options);
                  dlogits.give(std::move(gradient));
                });
}

template <typename T, typename D>
Loss<Accumulate<T>, D> mse_loss(const Variable<T, D>& x, const Tensor<Accumulate<T>, D>& target) {
  require_operands("mse_loss", x, target);
  const std::int64_t count = target.numel();
  return {.sum = elementwise_sum(ops::ElementwiseLoss::squared_error, x, target),
          .kept = static_cast<double>(count),
          .count = count};
}

template <typename T, typename D>
Loss<Accumulate<T>, D> bce_with_logits(const Variable<T, D>& logits, const Tensor<Accumulate<T>, D>& target,
                                       double positive_weight) {
  require_operands("bce_with_logits", logits, target);
  const std::int64_t count = target.numel();
  return {.sum = elementwise_sum(ops::ElementwiseLoss::binary_cross_entropy, logits, target, positive_weight),
          .kept = static_cast<double>(count),
          .count = count};
}

template <typename T, typename D>
Loss<Accumulate<T>, D> kl_divergence(const Variable<T, D>& log_probabilities, const Tensor<Accumulate<T>, D>& target,
                                     bool log_target) {
  require_operands("kl_divergence", log_probabilities, target);
  const auto kind = log_target ? ops::ElementwiseLoss::kl_divergence_log_target : ops::ElementwiseLoss::kl_divergence;
  const std::int64_t rows = target.shape().rows();
  return {.sum = elementwise_sum(kind, log_probabilities, target), .kept = static_cast<double>(rows), .count = rows};
}

template <typename T, typename D>
Loss<Accumulate<T>, D> distillation_loss(const Variable<T, D>& student, const Tensor<T, D>& teacher, double temperature) {
  require_operands("distillation_loss", student, teacher);
  require(temperature > 0, "distillation_loss: the temperature is {}, but must be above 0", temperature);
  using A = Accumulate<T>;
  if constexpr (!std::same_as<T, A>) {  // log-probabilities of a half type would lose what the two differ in
    Tensor<A, D> floats(teacher.shape());
    ops::cast(teacher, floats);
    return distillation_loss(cast<A>(student), floats, temperature);
  } else {
    const auto factor = static_cast<T>(1 / temperature);
    Tensor<T, D> target(teacher.shape());
    ops::scale(teacher, factor, target);
    ops::log_softmax(target, target);
    Loss<T, D> loss = kl_divergence(log_softmax(scale(student, factor)), target, true);
    loss.sum = scale(loss.sum, static_cast<T>(temperature * temperature));
    return loss;
  }
}

#define TRIREME_INSTANTIATE(T)                                                                                                \
  template Loss<Accumulate<T>, TRIREME_DEVICE> cross_entropy(const Variable<T, TRIREME_DEVICE>&,                              \
                                                             const Tensor<std::int32_t, TRIREME_DEVICE>&,                     \
                                                             const ops::CrossEntropyOptions<Accumulate<T>, TRIREME_DEVICE>&); \
  template Variable<Accumulate<T>, TRIREME_DEVICE> cross_entropy_rows(                                                        \
      const Variable<T, TRIREME_DEVICE>&, const Tensor<std::int32_t, TRIREME_DEVICE>&,                                        \
      const ops::CrossEntropyOptions<Accumulate<T>, TRIREME_DEVICE>&);                                                        \
  template Loss<Accumulate<T>, TRIREME_DEVICE> mse_loss(const Variable<T, TRIREME_DEVICE>&,                                   \
                                                        const Tensor<Accumulate<T>, TRIREME_DEVICE>&);                        \
  template Loss<Accumulate<T>, TRIREME_DEVICE> bce_with_logits(const Variable<T, TRIREME_DEVICE>&,                            \
                                                               const Tensor<Accumulate<T>, TRIREME_DEVICE>&, double);         \
  template Loss<Accumulate<T>, TRIREME_DEVICE> kl_divergence(const Variable<T, TRIREME_DEVICE>&,                              \
                                                             const Tensor<Accumulate<T>, TRIREME_DEVICE>&, bool);             \
  template Loss<Accumulate<T>, TRIREME_DEVICE> distillation_loss(const Variable<T, TRIREME_DEVICE>&,                          \
                                                                 const Tensor<T, TRIREME_DEVICE>&, double)
TRIREME_INSTANTIATE(float);
TRIREME_INSTANTIATE(double);
TRIREME_INSTANTIATE(bfloat16);
TRIREME_INSTANTIATE(float16);
#undef TRIREME_INSTANTIATE

}  // namespace trireme
