#include "trireme/autograd/operations/loss.hpp"

#include "precision/instantiate.hpp"
#include "trireme/autograd/operations/elementwise.hpp"
#include "trireme/autograd/operations/reduce.hpp"
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

template <typename A, typename D>
void describe_options(const ops::CrossEntropyOptions<A, D>& options, Attributes& to) {
  to["label_smoothing"] = options.label_smoothing;
}

struct ElementwiseLoss {
  std::string_view name;
  ops::ElementwiseLoss kind;
  ops::ElementwiseLossOptions options = {};

  template <typename T, typename D, typename A>
  void forward(const Tensor<T, D>& x, const Tensor<A, D>& target, Tensor<A, D>& sum) const {
    sum = ops::full<A>({}, ops::elementwise_loss(kind, x, target, options));
  }
  template <typename T, typename D, typename A>
  void backward(const Tensor<A, D>& dsum, const Tensor<T, D>& x, const Tensor<A, D>& target, const Gradient<T, D>& dx) const {
    dx.contribute([&](Tensor<T, D>& out, bool accumulate) {
      ops::elementwise_loss_backward(kind, x, target, Scalar<A, D>(dsum), out, accumulate, options);
    });
  }
  void describe(Attributes& to) const {
    using Kind = ops::ElementwiseLoss;
    if (kind == Kind::binary_cross_entropy) to["positive_weight"] = options.positive_weight;
    if (kind == Kind::kl_divergence_log_target) to["log_target"] = std::int64_t{1};
    if (kind == Kind::huber) to["delta"] = options.delta;
    if (kind == Kind::smooth_l1) to["beta"] = options.delta;
    if (kind == Kind::focal) {
      to["alpha"] = options.alpha;
      to["gamma"] = options.gamma;
    }
  }
};

template <typename T, typename D, typename A = Accumulate<T>>
Variable<A, D> elementwise_sum(const ElementwiseLoss& loss, const Variable<T, D>& x, const Tensor<A, D>& target) {
  return record(loss, Result<A, D>{}, kept(x), kept(target));
}

// Every element is a target.
template <typename T, typename D, typename A = Accumulate<T>>
Loss<A, D> of_elements(const ElementwiseLoss& loss, const Variable<T, D>& x, const Tensor<A, D>& target) {
  const std::int64_t count = target.numel();
  return {.sum = elementwise_sum(loss, x, target), .target_weight = static_cast<double>(count), .nominal_targets = count};
}

template <typename A, typename D>
struct CrossEntropy {
  static constexpr std::string_view name = "cross_entropy";
  ops::CrossEntropyOptions<A, D> options;

  template <typename T>
  void forward(const Tensor<T, D>& logits, const Tensor<std::int32_t, D>& targets, const Tensor<A, D>&,
               Scalar<double, D>& target_weight, Tensor<A, D>& sum, Tensor<A, D>& exponentials) const {
    const ops::CrossEntropyResult<D> result = ops::cross_entropy(logits, targets, exponentials, options);
    sum = ops::full<A>({}, result.sum);
    target_weight = result.target_weight;
  }
  template <typename T>
  void backward(const Tensor<A, D>& dsum, const Tensor<T, D>& logits, const Tensor<std::int32_t, D>& targets,
                const Tensor<A, D>& exponentials, const Gradient<T, D>& dlogits) const {
    // The gradient overwrites the logits, unless others share their storage.
    Tensor<T, D> gradient = logits.shares_storage() ? Tensor<T, D>(logits.shape()) : logits;
    ops::cross_entropy_backward(logits, targets, exponentials, Scalar<A, D>(dsum), gradient, options);
    dlogits.give(std::move(gradient));
  }
  void describe(Attributes& to) const { describe_options(options, to); }
};

template <typename A, typename D>
struct CrossEntropyRows {
  static constexpr std::string_view name = "cross_entropy_rows";
  ops::CrossEntropyOptions<A, D> options;

  template <typename T>
  void forward(const Tensor<T, D>& logits, const Tensor<std::int32_t, D>& targets, const Tensor<A, D>&, Tensor<A, D>& losses,
               Tensor<A, D>& exponentials) const {
    ops::cross_entropy(logits, targets, exponentials, options);
    ops::cross_entropy_rows(logits, targets, exponentials, losses, options);
  }
  template <typename T>
  void backward(const Tensor<A, D>& dlosses, const Tensor<T, D>& logits, const Tensor<std::int32_t, D>& targets,
                const Tensor<A, D>& exponentials, const Gradient<T, D>& dlogits) const {
    Tensor<T, D> gradient(logits.shape());
    ops::cross_entropy_rows_backward(logits, targets, exponentials, dlosses, gradient, options);
    dlogits.give(std::move(gradient));
  }
  void describe(Attributes& to) const { describe_options(options, to); }
};

}  // namespace

template <typename T, typename D>
Loss<Accumulate<T>, D> cross_entropy(const Variable<T, D>& logits, const Tensor<std::int32_t, D>& targets,
                                     const ops::CrossEntropyOptions<Accumulate<T>, D>& options) {
  using A = Accumulate<T>;
  const auto results = [&] {
    require_targets(logits, targets);
    return std::tuple(Result<A, D>{}, internal(Result<A, D>{{2, targets.numel()}}));
  };
  Loss<A, D> loss{.sum = {}, .nominal_targets = targets.numel()};
  loss.sum = record(CrossEntropy<A, D>{options}, results, kept(logits), kept(targets), optional(options.class_weight),
                    written(loss.target_weight));
  return loss;
}

template <typename T, typename D>
Variable<Accumulate<T>, D> cross_entropy_rows(const Variable<T, D>& logits, const Tensor<std::int32_t, D>& targets,
                                              const ops::CrossEntropyOptions<Accumulate<T>, D>& options) {
  using A = Accumulate<T>;
  const auto results = [&] {
    require_targets(logits, targets);
    return std::tuple(Result<A, D>{targets.shape()}, internal(Result<A, D>{{2, targets.numel()}}));
  };
  return record(CrossEntropyRows<A, D>{options}, results, kept(logits), kept(targets), optional(options.class_weight));
}

template <typename T, typename D>
Loss<Accumulate<T>, D> mse_loss(const Variable<T, D>& x, const Tensor<Accumulate<T>, D>& target) {
  return of_elements({"mse_loss", ops::ElementwiseLoss::squared_error}, x, target);
}

template <typename T, typename D>
Loss<Accumulate<T>, D> bce_with_logits(const Variable<T, D>& logits, const Tensor<Accumulate<T>, D>& target,
                                       double positive_weight) {
  return of_elements({"bce_with_logits", ops::ElementwiseLoss::binary_cross_entropy, {.positive_weight = positive_weight}},
                     logits, target);
}

template <typename T, typename D>
Loss<Accumulate<T>, D> l1_loss(const Variable<T, D>& x, const Tensor<Accumulate<T>, D>& target) {
  return of_elements({"l1_loss", ops::ElementwiseLoss::absolute_error}, x, target);
}

template <typename T, typename D>
Loss<Accumulate<T>, D> huber_loss(const Variable<T, D>& x, const Tensor<Accumulate<T>, D>& target, double delta) {
  return of_elements({"huber_loss", ops::ElementwiseLoss::huber, {.delta = delta}}, x, target);
}

template <typename T, typename D>
Loss<Accumulate<T>, D> smooth_l1_loss(const Variable<T, D>& x, const Tensor<Accumulate<T>, D>& target, double beta) {
  return of_elements({"smooth_l1_loss", ops::ElementwiseLoss::smooth_l1, {.delta = beta}}, x, target);
}

template <typename T, typename D>
Loss<Accumulate<T>, D> sigmoid_focal_loss(const Variable<T, D>& logits, const Tensor<Accumulate<T>, D>& target,
                                          const FocalLossOptions& options) {
  return of_elements({"sigmoid_focal_loss", ops::ElementwiseLoss::focal, {.alpha = options.alpha, .gamma = options.gamma}},
                     logits, target);
}

template <typename T, typename D>
Loss<Accumulate<T>, D> kl_divergence(const Variable<T, D>& log_probabilities, const Tensor<Accumulate<T>, D>& target,
                                     bool log_target) {
  const auto kind = log_target ? ops::ElementwiseLoss::kl_divergence_log_target : ops::ElementwiseLoss::kl_divergence;
  Variable<Accumulate<T>, D> sum = elementwise_sum({"kl_divergence", kind}, log_probabilities, target);
  const std::int64_t rows = target.shape().rows();
  return {.sum = std::move(sum), .target_weight = static_cast<double>(rows), .nominal_targets = rows};
}

template <typename T, typename D>
Loss<Accumulate<T>, D> distillation_loss(const Variable<T, D>& student, const Tensor<T, D>& teacher, double temperature) {
  require_operands("distillation_loss", student, teacher);
  require(temperature > 0, "distillation_loss: the temperature is {}, but must be above 0", temperature);
  using A = Accumulate<T>;
  if constexpr (!std::same_as<T, A>) {  // in a half type, rounding would hide small differences
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

#define TRIREME_OVERLOADS(T, D)                                                                        \
  template Loss<Accumulate<T>, D> cross_entropy(const Variable<T, D>&, const Tensor<std::int32_t, D>&, \
                                                const ops::CrossEntropyOptions<Accumulate<T>, D>&);    \
  template Loss<Accumulate<T>, D> mse_loss(const Variable<T, D>&, const Tensor<Accumulate<T>, D>&);
TRIREME_EACH(FLOATS, TRIREME_OVERLOADS, TRIREME_DEVICE)
#undef TRIREME_OVERLOADS
TRIREME_INSTANTIATE(FLOATS, cross_entropy_rows, TRIREME_DEVICE)
TRIREME_INSTANTIATE(FLOATS, bce_with_logits, TRIREME_DEVICE)
TRIREME_INSTANTIATE(FLOATS, l1_loss, TRIREME_DEVICE)
TRIREME_INSTANTIATE(FLOATS, huber_loss, TRIREME_DEVICE)
TRIREME_INSTANTIATE(FLOATS, smooth_l1_loss, TRIREME_DEVICE)
TRIREME_INSTANTIATE(FLOATS, sigmoid_focal_loss, TRIREME_DEVICE)
TRIREME_INSTANTIATE(FLOATS, kl_divergence, TRIREME_DEVICE)
TRIREME_INSTANTIATE(FLOATS, distillation_loss, TRIREME_DEVICE)

}  // namespace trireme
