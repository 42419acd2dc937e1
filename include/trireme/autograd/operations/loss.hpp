#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <utility>

#include "trireme/autograd/operands.hpp"
#include "trireme/autograd/operations/array.hpp"
#include "trireme/autograd/operations/elementwise.hpp"
#include "trireme/autograd/variable.hpp"
#include "trireme/core/export.hpp"
#include "trireme/ops/elementwise/elementwise.hpp"
#include "trireme/ops/elementwise/full.hpp"
#include "trireme/ops/loss/loss.hpp"
#include "trireme/ops/update/step.hpp"
#include "trireme/tensor/scalar.hpp"

// Losses of Variables. Each is a sum over the targets that count, with the number of these targets. The loss of bfloat16 and
// float16 is float.
namespace trireme TRIREME_EXPORT {

// A loss that add_loss() has put on a tape.
template <typename T, typename D>
class AddedLossOf final : public AddedLoss {
 public:
  explicit AddedLossOf(Variable<T, D> loss) : sum(std::move(loss)) {}

  std::shared_ptr<GradientSlot> slot() const override { return sum.gradient().shared_slot(); }
  double value() const override { return static_cast<double>(sum.value().item()); }
  void add_to(StepTotals* totals) const override {
    if constexpr (Tensor<T, D>::on_host) {
      totals->loss_sum += value();
    } else {
      ops::add_to_totals(ops::StepSums<T, D>{.loss = Scalar<T, D>(sum.value())}, totals);
    }
  }
  void begin_alone() override {
    if (!has_begun_) begin(Tensor<T, D>::full(sum.shape(), T{1}));
  }
  void begin(Tensor<T, D> upstream) {
    sum.gradient().give(std::move(upstream));
    has_begun_ = true;
  }

  Variable<T, D> sum;

 private:
  bool has_begun_ = false;
};

// Adds an auxiliary loss, such as a loss that balances experts: `sum` (one element) is added to the Loss::sum of this
// micro-batch. Any layer in any stage of a pipeline may call add_loss(). If the loss is a mean over targets, multiply it by the
// number of targets first. All ranks of a tensor axis must add the same loss. Without a tape, as in evaluation, add_loss() does
// nothing.
template <typename T, typename D>
void add_loss(const Variable<T, D>& sum) {
  require(sum.value().defined() && sum.shape().numel() == 1, "add_loss() takes one element, not {}",
          sum.value().defined() ? "a tensor of shape " + sum.shape().str() : "an undefined Variable");
  if (Tape* tape = Tape::current()) {
    tape->add_loss(std::make_shared<AddedLossOf<Accumulate<T>, D>>(cast<Accumulate<T>>(sum)));
  }
}

// The loss of a micro-batch as a sum, with the numbers that a mean over several micro-batches and ranks needs.
template <typename T, typename D = Cpu>
struct Loss {
  Variable<T, D> sum;                    // over counted targets
  Scalar<double, D> target_weight = {};  // the sum of the class weights of the targets that count
  std::int64_t nominal_targets = 0;      // all targets, including ignored targets; the same in every micro-batch of a step
  Scalar<double, D> scale = 1.0;         // factor on the gradients, see amp::GradScaler

  // Returns 0 if no target counts; PyTorch returns NaN. On a GPU the host waits for the result.
  double mean() const {
    const double targets = target_weight.item();
    return targets == 0 ? 0.0 : static_cast<double>(sum.value().item()) / targets;
  }

  // Computes gradients of scale * sum / nominal_targets, where sum includes the losses that add_loss() added. The optimizer
  // step multiplies the gradients by nominal_targets / target_weight of the whole step.
  void backward() const {
    if (Tape* tape = Tape::current()) begin_added(*tape);
    sum.backward(upstream(sum.shape()));
  }

  // Starts the backward pass of added losses only, for the tape of a stage that has no other loss.
  void begin_added(const Tape& tape) const {
    for (const std::shared_ptr<AddedLoss>& added : tape.added_losses()) {
      auto* loss = dynamic_cast<AddedLossOf<T, D>*>(added.get());
      require(loss != nullptr,
              "add_loss() got a loss of another element type, or on another device, than the loss of its step");
      loss->begin(upstream(loss->sum.shape()));
    }
  }

 private:
  Tensor<T, D> upstream(const Shape& shape) const {
    if (!scale.element().defined()) {
      return Tensor<T, D>::full(shape, static_cast<T>(scale.known() / static_cast<double>(nominal_targets)));
    }
    const Tensor<T, D> scaled = ops::full<T>(shape, scale);
    Tensor<T, D> of_mean(shape);
    ops::scale(scaled, static_cast<T>(1 / static_cast<double>(nominal_targets)), of_mean);
    return of_mean;
  }
};

// Returns a Loss unchanged. Makes a Loss with one target from a Variable of one element.
template <typename T, typename D>
const Loss<T, D>& as_loss(const Loss<T, D>& loss) {
  return loss;
}
template <typename T, typename D>
Loss<Accumulate<T>, D> as_loss(const Variable<T, D>& value) {
  require(value.value().defined() && value.shape().numel() == 1,
          "a loss is a Loss or a Variable of one element, not a Variable of shape {}",
          value.value().defined() ? value.shape().str() : "undefined");
  return {.sum = cast<Accumulate<T>>(value), .target_weight = 1.0, .nominal_targets = 1};
}

// Adds two losses: the mean of the result is the sum of both means, also over a step of several micro-batches and ranks. Losses
// with different numbers of targets or different scales are an error. If the numbers are on a GPU, the host waits for the GPU.
template <typename T, typename D>
Loss<T, D> add(const Loss<T, D>& a, const Loss<T, D>& b) {
  require_operands("add", a.sum, b.sum);
  require(a.target_weight.item() == b.target_weight.item() && a.nominal_targets == b.nominal_targets &&
              a.scale.item() == b.scale.item(),
          "add: losses with {} of {} and {} of {} targets counted, and scales {} and {}: the mean of a sum needs equal numbers",
          a.target_weight.item(), a.nominal_targets, b.target_weight.item(), b.nominal_targets, a.scale.item(), b.scale.item());
  return {.sum = add(a.sum, b.sum), .target_weight = a.target_weight, .nominal_targets = a.nominal_targets, .scale = a.scale};
}

// Adds `value` (one element, such as a penalty) to the mean of `loss`. If ranks or micro-batches have different values, the
// mean of these values over the targets is added. If the numbers of targets are on a GPU, the host waits for the GPU.
template <typename T, typename D, typename V>
requires std::same_as<Accumulate<V>, T> Loss<T, D> add(const Loss<T, D>& loss, const Variable<V, D>& value) {
  require_operands("add", loss.sum, value);
  require(value.shape().numel() == 1, "add: a Variable that is added to a loss needs one element, not shape {}", value.shape());
  const Variable<T, D> of_targets = scale(cast<T>(value), static_cast<Accumulate<T>>(loss.target_weight.item()));
  return {.sum = add(loss.sum, reshape(of_targets, loss.sum.shape())),
          .target_weight = loss.target_weight,
          .nominal_targets = loss.nominal_targets,
          .scale = loss.scale};
}

// Multiplies the mean of `loss` by `factor`. With operators.hpp you can write 0.5 * (a + b) for losses.
template <typename T, typename D>
Loss<T, D> scale(const Loss<T, D>& loss, double factor) {
  return {.sum = scale(loss.sum, static_cast<Accumulate<T>>(factor)),
          .target_weight = loss.target_weight,
          .nominal_targets = loss.nominal_targets,
          .scale = loss.scale};
}

// Softmax cross-entropy of logits[..., classes] with one class number for each row. Rows with the target ignore_index are
// ignored.
template <typename T, typename D>
TRIREME_EXPORT Loss<Accumulate<T>, D> cross_entropy(const Variable<T, D>& logits, const Tensor<std::int32_t, D>& targets,
                                                    const ops::CrossEntropyOptions<Accumulate<T>, D>& options = {});

// cross_entropy() without a reduction: the loss of each row, in the shape of targets; 0 for ignored rows.
template <typename T, typename D>
TRIREME_EXPORT Variable<Accumulate<T>, D> cross_entropy_rows(const Variable<T, D>& logits,
                                                             const Tensor<std::int32_t, D>& targets,
                                                             const ops::CrossEntropyOptions<Accumulate<T>, D>& options = {});

// Losses of each element of x and a constant target of the same shape; every element is a counted target. For bfloat16 and
// float16, target and loss are float.
template <typename T, typename D>
TRIREME_EXPORT Loss<Accumulate<T>, D> mse_loss(const Variable<T, D>& x, const Tensor<Accumulate<T>, D>& target);
template <typename T, typename D>
TRIREME_EXPORT Loss<Accumulate<T>, D> bce_with_logits(const Variable<T, D>& logits, const Tensor<Accumulate<T>, D>& target,
                                                      double positive_weight = 1);

template <typename T, typename D>
TRIREME_EXPORT Loss<Accumulate<T>, D> l1_loss(const Variable<T, D>& x, const Tensor<Accumulate<T>, D>& target);
// (x - target)^2 / 2 if |x - target| <= delta, linear beyond (Huber 1964); delta must be above 0.
template <typename T, typename D>
TRIREME_EXPORT Loss<Accumulate<T>, D> huber_loss(const Variable<T, D>& x, const Tensor<Accumulate<T>, D>& target,
                                                 double delta = 1);
// huber_loss with delta = beta, divided by beta; l1_loss if beta is 0.
template <typename T, typename D>
TRIREME_EXPORT Loss<Accumulate<T>, D> smooth_l1_loss(const Variable<T, D>& x, const Tensor<Accumulate<T>, D>& target,
                                                     double beta = 1);

struct FocalLossOptions {
  double alpha = 0.25;  // factor on targets of 1; the factor on targets of 0 is 1 - alpha; below 0: no factors
  double gamma = 2;
};
// bce_with_logits multiplied by (1 - probability of the target)^gamma: elements that are classified well count less (Lin et al.
// 2017, arXiv 1708.02002), as torchvision.ops.sigmoid_focal_loss.
template <typename T, typename D>
TRIREME_EXPORT Loss<Accumulate<T>, D> sigmoid_focal_loss(const Variable<T, D>& logits, const Tensor<Accumulate<T>, D>& target,
                                                         const FocalLossOptions& options = {});

// KL(target || exp(log_probabilities)) over the last dim; mean() is the mean over rows (PyTorch's batchmean for two dims). The
// target holds probabilities, or their logarithms; NaN and probabilities below 0 give NaN. A target of 0 contributes 0 even if
// the log-probability is infinite; PyTorch then returns NaN.
template <typename T, typename D>
TRIREME_EXPORT Loss<Accumulate<T>, D> kl_divergence(const Variable<T, D>& log_probabilities,
                                                    const Tensor<Accumulate<T>, D>& target, bool log_target = false);

// temperature^2 * KL(softmax(teacher / temperature) || softmax(student / temperature)) over the last dim of the logits (Hinton,
// Vinyals, Dean 2015, arXiv 1503.02531).
template <typename T, typename D>
TRIREME_EXPORT Loss<Accumulate<T>, D> distillation_loss(const Variable<T, D>& student, const Tensor<T, D>& teacher,
                                                        double temperature);

}  // namespace trireme
