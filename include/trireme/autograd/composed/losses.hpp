#pragma once

#include <cstdint>
#include <limits>
#include <string_view>
#include <utility>

#include "trireme/autograd/composed/gather_batch.hpp"
#include "trireme/autograd/composed/normalize.hpp"
#include "trireme/autograd/operations/array.hpp"
#include "trireme/autograd/operations/elementwise.hpp"
#include "trireme/autograd/operations/index.hpp"
#include "trireme/autograd/operations/loss.hpp"
#include "trireme/autograd/operations/matmul.hpp"
#include "trireme/autograd/operations/pointwise.hpp"
#include "trireme/autograd/operations/reduce.hpp"
#include "trireme/core/collectives.hpp"
#include "trireme/core/export.hpp"
#include "trireme/ops/array/create.hpp"
#include "trireme/ops/loss/ctc.hpp"
#include "trireme/ops/loss/elementwise_loss.hpp"
#include "trireme/ops/loss/loss.hpp"

// Losses composed of other functions, and the CTC loss. Half types are cast to float first. Like the losses of
// autograd/operations/loss.hpp, these losses return a sum over targets and the number of targets. Their `mean()` is PyTorch's
// reduction="mean".
namespace trireme TRIREME_EXPORT {
namespace detail {

// Each row counts as one target.
template <typename T, typename D>
Loss<T, D> loss_of_rows(const Variable<T, D>& losses) {
  const std::int64_t rows = losses.shape().numel();
  return {.sum = sum(losses), .target_weight = static_cast<double>(rows), .nominal_targets = rows};
}

}  // namespace detail

template <typename A, typename D>
struct SoftTargetOptions {
  double label_smoothing = 0;      // the share of each distribution that is spread evenly over all classes
  Tensor<A, D> class_weight = {};  // [classes]; undefined: 1
  Tensor<bool, D> counted = {};    // [...], true for each row that counts; undefined: all rows count
};

// Cross-entropy of logits[..., classes] with probabilities of the same shape. Every row is one target.
template <typename T, typename D>
Loss<Accumulate<T>, D> cross_entropy(const Variable<T, D>& logits, const Tensor<Accumulate<T>, D>& probabilities,
                                     const SoftTargetOptions<Accumulate<T>, D>& options = {}) {
  using A = Accumulate<T>;
  require_operands("cross_entropy", logits, probabilities);
  require(logits.shape() == probabilities.shape(), "cross_entropy: probabilities {} for logits {}", probabilities.shape(),
          logits.shape());
  require(options.label_smoothing >= 0 && options.label_smoothing <= 1,
          "cross_entropy: label_smoothing is {}, but must lie in [0, 1]", options.label_smoothing);
  Variable<A, D> x = detail::rows_of("cross_entropy", logits);
  const std::int64_t rows = x.shape()[0];
  Tensor<A, D> weights = probabilities.reshape(x.shape());
  if (options.label_smoothing > 0) {
    const auto classes = static_cast<double>(x.shape().back());
    weights = add(multiply(weights, 1 - options.label_smoothing), options.label_smoothing / classes);
  }
  if (options.class_weight.defined()) {
    require(options.class_weight.shape() == Shape{x.shape().back()}, "cross_entropy: class_weight has shape {}, but needs [{}]",
            options.class_weight.shape(), x.shape().back());
    weights = multiply(weights, options.class_weight);
  }
  Loss<A, D> loss{.sum = {}, .target_weight = static_cast<double>(rows), .nominal_targets = rows};
  if (options.counted.defined()) {
    require(options.counted.numel() == rows, "cross_entropy: counted has shape {} for logits {}", options.counted.shape(),
            logits.shape());
    const Tensor<bool, D> counted = options.counted.reshape({rows, 1});
    const Tensor<A, D> zeros = Tensor<A, D>::zeros({rows, 1});
    const Tensor<A, D> ones = where(counted, Tensor<A, D>::full({rows, 1}, A{1}), A{0});
    loss.target_weight = ops::elementwise_loss(ops::ElementwiseLoss::absolute_error, ones, zeros);  // number of counted rows
    x = where(counted, x, A{0});
    weights = where(counted, weights, A{0});
  }
  loss.sum = sum(multiply(log_softmax(x), neg(weights)));
  return loss;
}

template <typename A, typename D>
struct NllOptions {
  std::int32_t ignore_index = ops::ignored_target;
  Tensor<A, D> class_weight = {};  // [classes]; undefined: 1
};

// The loss of a row is -log_probabilities[..., target]. targets has one class number for each row; rows with the target
// ignore_index are ignored. Any other target outside [0, classes) is an error that names the row. On a GPU such a target makes
// the loss NaN instead, because the host does not wait. cross_entropy() computes log_softmax and this loss in one pass.
template <typename T, typename D>
Loss<Accumulate<T>, D> nll_loss(const Variable<T, D>& log_probabilities, const Tensor<std::int32_t, D>& targets,
                                const NllOptions<Accumulate<T>, D>& options = {}) {
  using A = Accumulate<T>;
  require_operands("nll_loss", log_probabilities, targets);
  const Variable<A, D> x = detail::rows_of("nll_loss", log_probabilities);
  const std::int64_t rows = x.shape()[0];
  const std::int64_t classes = x.shape()[1];
  require(classes > 0, "nll_loss: log-probabilities of shape {} have no class", log_probabilities.shape());
  require(targets.numel() == rows, "nll_loss: {} targets for log-probabilities {}", targets.numel(), log_probabilities.shape());
  const Tensor<std::int32_t, D> column = targets.reshape({rows, 1});
  const Tensor<bool, D> counted = ne(column, options.ignore_index);
  const Tensor<bool, D> outside = logical_or(lt(column, 0), ge(column, static_cast<std::int32_t>(classes)));
  const Tensor<bool, D> wrong = logical_and(counted, outside);
  const Tensor<std::int32_t, D> place = where(outside, 0, column);
  Tensor<A, D> weights = where(counted, Tensor<A, D>::full({rows, 1}, A{1}), A{0});
  if (options.class_weight.defined()) {
    require(options.class_weight.shape() == Shape{classes}, "nll_loss: class_weight has shape {}, but needs [{}]",
            options.class_weight.shape(), classes);
    weights = multiply(weights, index_select(options.class_weight, 0, place.reshape({rows})).reshape({rows, 1}));
  }
  if constexpr (Tensor<A, D>::on_host) {
    for (std::int64_t row = 0; row < rows; ++row) {
      require(!wrong.data()[row], "nll_loss: the target of row {} is {}, but must lie in [0, {}) or be {}", row,
              column.data()[row], classes, options.ignore_index);
    }
  } else {
    weights = where(wrong, std::numeric_limits<A>::quiet_NaN(), weights);
  }
  const Tensor<A, D> zeros = Tensor<A, D>::zeros(weights.shape());
  Loss<A, D> loss{.sum = {},  // weights are 0 or more, so target_weight is their sum, in double
                  .target_weight = ops::elementwise_loss(ops::ElementwiseLoss::absolute_error, weights, zeros),
                  .nominal_targets = rows};
  loss.sum = sum(multiply(where(counted, gather(x, 1, place), A{0}), neg(weights)));
  return loss;
}

// The loss of a row is 1 - cosine if its target is 1, and max(0, cosine - margin) if its target is -1. a and b are [...,
// width], targets are [...].
template <typename T, typename D>
Loss<Accumulate<T>, D> cosine_embedding_loss(const Variable<T, D>& a, const Variable<T, D>& b,
                                             const Tensor<std::int32_t, D>& targets, double margin = 0) {
  using A = Accumulate<T>;
  require_operands("cosine_embedding_loss", a, b, targets);
  detail::require_same_shape("cosine_embedding_loss", a, b);
  const Variable<A, D> x = detail::rows_of("cosine_embedding_loss", a);
  const Variable<A, D> y = detail::rows_of("cosine_embedding_loss", b);
  const std::int64_t rows = x.shape()[0];
  require(targets.numel() == rows, "cosine_embedding_loss: {} targets for {} rows", targets.numel(), rows);
  if constexpr (Tensor<A, D>::on_host) {
    for (const std::int32_t target : targets.span()) {
      require(target == 1 || target == -1, "cosine_embedding_loss: a target is {}, but must be 1 or -1", target);
    }
  }
  // As in PyTorch, 1e-12 is added to both sums of squares.
  const auto inverse = [](const Variable<A, D>& v) { return rsqrt(add(detail::row_sums(square(v)), 1e-12)); };
  const Variable<A, D> cosines = multiply(multiply(detail::row_sums(multiply(x, y)), inverse(x)), inverse(y));
  return detail::loss_of_rows(where(eq(targets.reshape({rows, 1}), 1), subtract(1, cosines), relu(subtract(cosines, margin))));
}

struct TripletOptions {
  double margin = 1;
  double epsilon = 1e-6;  // added to each difference
  bool swap = false;      // uses the smaller of |anchor - negative| and |positive - negative|
};

// max(0, |anchor - positive| - |anchor - negative| + margin), with norms along the last dim; all operands are [..., width].
template <typename T, typename D>
Loss<Accumulate<T>, D> triplet_margin_loss(const Variable<T, D>& anchor, const Variable<T, D>& positive,
                                           const Variable<T, D>& negative, const TripletOptions& options = {}) {
  using A = Accumulate<T>;
  detail::require_same_shape("triplet_margin_loss", anchor, positive);
  detail::require_same_shape("triplet_margin_loss", anchor, negative);
  const Variable<A, D> a = detail::rows_of("triplet_margin_loss", anchor);
  const Variable<A, D> p = detail::rows_of("triplet_margin_loss", positive);
  const Variable<A, D> n = detail::rows_of("triplet_margin_loss", negative);
  const auto distance = [&](const Variable<A, D>& x, const Variable<A, D>& y) {
    const auto squares = detail::row_sums(square(add(subtract(x, y), options.epsilon)));
    return sqrt(maximum(squares, std::numeric_limits<float>::min()));  // at 0 the root has no derivative
  };
  const Variable<A, D> near = distance(a, p);
  Variable<A, D> far = distance(a, n);
  if (options.swap) far = minimum(far, distance(p, n));
  return detail::loss_of_rows(relu(add(subtract(near, far), options.margin)));
}

struct InfoNceOptions {
  double temperature = 0.07;
  bool normalize = true;  // divides queries and keys by their norms first, so that products are cosines
};

// InfoNCE (van den Oord et al. 2018, arXiv 1807.03748): for each query, the cross-entropy of finding its key, which has the
// same row number, among all keys. queries and keys are [rows, width]. With an axis, the keys of all ranks of the axis are
// used, and these ranks must have the same number of rows. A loss of both directions, as in CLIP, is add(info_nce_loss(a, b),
// info_nce_loss(b, a)). The axis must outlive the tape.
template <typename T, typename D>
Loss<Accumulate<T>, D> info_nce_loss(const Variable<T, D>& queries, const Variable<T, D>& keys,
                                     const InfoNceOptions& options = {}, const Collectives* axis = nullptr) {
  using A = Accumulate<T>;
  detail::require_same_shape("info_nce_loss", queries, keys);
  require(queries.shape().size() == 2, "info_nce_loss: queries and keys have shape {}, but need [rows, width]",
          queries.shape());
  require(options.temperature > 0, "info_nce_loss: the temperature is {}, but must be above 0", options.temperature);
  Variable<A, D> q = cast<A>(queries);
  Variable<A, D> k = cast<A>(keys);
  if (options.normalize) {
    q = normalize(q);
    k = normalize(k);
  }
  const std::int64_t rows = q.shape()[0];
  std::int64_t first = 0;
  if (axis != nullptr) {
    k = gather_batch(k, *axis);
    first = axis->rank() * rows;
  }
  const auto targets = arange<std::int32_t, D>(static_cast<double>(first), static_cast<double>(first + rows));
  return cross_entropy(scale(matmul(q, transpose(k, 0, 1)), static_cast<A>(1 / options.temperature)), targets);
}

// mse_loss() of two Variables: both get gradients.
template <typename T, typename D>
Loss<Accumulate<T>, D> mse_loss(const Variable<T, D>& x, const Variable<T, D>& target) {
  using A = Accumulate<T>;
  detail::require_same_shape("mse_loss", x, target);
  const std::int64_t count = x.shape().numel();
  return {.sum = sum(square(subtract(cast<A>(x), cast<A>(target)))),
          .target_weight = static_cast<double>(count),
          .nominal_targets = count};
}

// The Dice loss of each sample: 1 - (2 * overlap + smoothing) / (sum of p + sum of targets + smoothing) with p =
// sigmoid(logits), overlap = sum of p * target, and sums over all dims but dim 0 (Milletari et al. 2016, arXiv 1606.04797).
template <typename T, typename D>
Loss<Accumulate<T>, D> dice_loss(const Variable<T, D>& logits, const Tensor<Accumulate<T>, D>& target, double smoothing = 1) {
  using A = Accumulate<T>;
  require_operands("dice_loss", logits, target);
  require(logits.shape() == target.shape() && logits.shape().size() > 0,
          "dice_loss: logits {} and targets {} must have one shape, [batch, ...]", logits.shape(), target.shape());
  const std::int64_t batch = logits.shape()[0];
  const Shape rows{batch, batch == 0 ? 0 : logits.shape().numel() / batch};
  const Variable<A, D> p = sigmoid(cast<A>(reshape(logits, rows)));
  const Variable<A, D> t = target.reshape(rows);
  const Variable<A, D> overlap = detail::row_sums(multiply(p, t));
  const Variable<A, D> total = detail::row_sums(add(p, t));
  return detail::loss_of_rows(subtract(1, divide(add(multiply(overlap, 2), smoothing), add(total, smoothing))));
}

struct SoftmaxDiceOptions {
  double smoothing = 1;
  std::int32_t ignore_index = ops::ignored_target;
};

// The dice_loss() of each class, with p = softmax(logits[batch, ..., classes]), averaged over the classes. targets[batch, ...]
// are class numbers; places with the target ignore_index are ignored. Each sample counts as one target. Any other target
// outside [0, classes) is an error. On a GPU such a target makes the loss of its sample NaN instead, because the host does not
// wait.
template <typename T, typename D>
Loss<Accumulate<T>, D> softmax_dice_loss(const Variable<T, D>& logits, const Tensor<std::int32_t, D>& targets,
                                         const SoftmaxDiceOptions& options = {}) {
  using A = Accumulate<T>;
  require_operands("softmax_dice_loss", logits, targets);
  const Shape& shape = logits.shape();
  require(shape.size() >= 2 && shape.back() > 0 && targets.numel() == shape.rows(),
          "softmax_dice_loss: targets {} for logits {}, which need to be [batch, ..., classes]", targets.shape(), shape);
  const std::int64_t batch = shape[0], classes = shape.back(), places = batch == 0 ? 0 : shape.rows() / batch;
  const Tensor<std::int32_t, D> column = targets.reshape({batch, places, 1});
  const Tensor<bool, D> counted = ne(column, options.ignore_index);
  const Tensor<bool, D> outside = logical_or(lt(column, 0), ge(column, static_cast<std::int32_t>(classes)));
  Variable<A, D> p = where(counted, softmax(cast<A>(reshape(logits, {batch, places, classes}))), 0);
  if constexpr (Tensor<A, D>::on_host) {
    for (std::int64_t place = 0; place < targets.numel(); ++place) {
      require(!counted.data()[place] || !outside.data()[place],
              "softmax_dice_loss: the target of place {} is {}, but must lie in [0, {}) or be {}", place, column.data()[place],
              classes, options.ignore_index);
    }
  } else {
    p = where(logical_and(counted, outside), std::numeric_limits<A>::quiet_NaN(), p);
  }
  const Tensor<bool, D> of_class = logical_and(counted, eq(column, arange<std::int32_t, D>(classes)));
  const Tensor<A, D> one_hot = where(of_class, Tensor<A, D>::full({batch, places, classes}, A{1}), A{0});
  const Variable<A, D> overlap = sum(multiply(p, Variable<A, D>(one_hot)), 1);
  const Variable<A, D> total = sum(add(p, Variable<A, D>(one_hot)), 1);
  const Variable<A, D> dice = divide(add(multiply(overlap, 2), options.smoothing), add(total, options.smoothing));
  return detail::loss_of_rows(subtract(1, mean(dice, -1)));
}

// The loss of each sample, see ops/loss/ctc.hpp; T: float, double.
template <typename T, typename D>
TRIREME_EXPORT Variable<T, D> ctc_losses(const Variable<T, D>& log_probabilities, const Tensor<std::int32_t, D>& targets,
                                         const Tensor<std::int32_t, D>& input_lengths,
                                         const Tensor<std::int32_t, D>& target_lengths, const ops::CtcOptions& options = {});

// Connectionist temporal classification (Graves et al. 2006): -log of the total probability of all alignments of targets[batch,
// labels] to log_probabilities[batch, time, classes]. input_lengths[batch] and target_lengths[batch] say how much of each
// sample is used. Each sample counts as one target. A sample's loss is divided by its number of labels, as in PyTorch's mean;
// CtcOptions::per_label = false omits this division.
template <typename T, typename D>
Loss<Accumulate<T>, D> ctc_loss(const Variable<T, D>& log_probabilities, const Tensor<std::int32_t, D>& targets,
                                const Tensor<std::int32_t, D>& input_lengths, const Tensor<std::int32_t, D>& target_lengths,
                                const ops::CtcOptions& options = {}) {
  require_operands("ctc_loss", log_probabilities, targets, input_lengths, target_lengths);
  return detail::loss_of_rows(
      ctc_losses(cast<Accumulate<T>>(log_probabilities), targets, input_lengths, target_lengths, options));
}

}  // namespace trireme
