#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "trireme/autograd/operations/elementwise.hpp"
#include "trireme/autograd/operations/loss.hpp"
#include "trireme/autograd/variable.hpp"
#include "trireme/core/collectives.hpp"
#include "trireme/core/export.hpp"
#include "trireme/core/mean.hpp"
#include "trireme/ops/loss/ignored_target.hpp"

// How good a model is: numbers that are counted batch by batch and rank by rank, and then reduced over the ranks.
//
//   Mean right;
//   for (const auto& batch : batches) right += accuracy(net.forward(batch.images), batch.labels);
//   all_reduce(world, right);
//   log(Severity::info, "accuracy {:.2f} %", 100 * right.value());
//
// Logits are [..., classes], labels [...], one for each row of classes. T: float, double, bfloat16, float16; what lies on a GPU
// is copied to the host. The class that a row predicts is that of its largest logit, of equal ones the first. A row with a NaN
// predicts nothing: it counts, as a wrong one. Rows of the label ops::ignored_target (-100, data::no_label) don't count.
// Another label outside [0, classes) is an error, and nothing is counted.
namespace trireme TRIREME_EXPORT {

namespace detail {
template <typename T>
TRIREME_EXPORT Mean top_k_accuracy_on_host(const Tensor<T>& logits, const Tensor<std::int32_t>& labels, int k);
template <typename T>
TRIREME_EXPORT Mean mean_squared_error_on_host(const Tensor<T>& x, const Tensor<Accumulate<T>>& target);

template <typename T, typename D>
Tensor<T> on_host(const Tensor<T, D>& tensor) {
  if constexpr (Tensor<T, D>::on_host) {
    return tensor;
  } else {
    return tensor.template to<Cpu>();
  }
}
}  // namespace detail

// The share of rows whose label is among the k classes with the largest logits.
template <typename T, typename D>
Mean top_k_accuracy(const Tensor<T, D>& logits, const Tensor<std::int32_t, D>& labels, int k) {
  return detail::top_k_accuracy_on_host(detail::on_host(logits), detail::on_host(labels), k);
}
template <typename T, typename D>
Mean top_k_accuracy(const Variable<T, D>& logits, const Tensor<std::int32_t, D>& labels, int k) {
  return top_k_accuracy(logits.value(), labels, k);
}

// The share of rows that predict their label.
template <typename T, typename D>
Mean accuracy(const Tensor<T, D>& logits, const Tensor<std::int32_t, D>& labels) {
  return top_k_accuracy(logits, labels, 1);
}
template <typename T, typename D>
Mean accuracy(const Variable<T, D>& logits, const Tensor<std::int32_t, D>& labels) {
  return accuracy(logits.value(), labels);
}

// The mean over a loss's targets; the host waits for a GPU's.
template <typename T, typename D>
Mean mean_of(const Loss<T, D>& loss) {
  return {.sum = static_cast<double>(loss.sum.value().item()), .weight = loss.target_weight.item()};
}

// exp(mean cross-entropy): of mean_of() the losses of all batches and ranks.
double perplexity(const Mean& loss);

// Of all elements; the target has the shape of x, and float elements where x has half ones, as in mse_loss.
template <typename T, typename D>
Mean mean_squared_error(const Tensor<T, D>& x, const Tensor<Accumulate<T>, D>& target) {
  return detail::mean_squared_error_on_host(detail::on_host(x), detail::on_host(target));
}
template <typename T, typename D>
Mean mean_squared_error(const Variable<T, D>& x, const Tensor<Accumulate<T>, D>& target) {
  return mean_squared_error(x.value(), target);
}

// How many rows of which label predict which class. Precision, recall and F1 are those of scikit-learn's
// precision_recall_fscore_support(labels, predicted, labels=range(classes), zero_division=0), intersection over union that of
// its jaccard_score(): 0 where a quotient has nothing below the line, and macro averages are over all classes, those that never
// occur too.
//
//   ConfusionMatrix matrix(10);
//   for (const auto& batch : batches) matrix.add(net.forward(batch.images), batch.labels);
//   all_reduce(world, matrix);
//   const double f1 = matrix.macro_f1();
class ConfusionMatrix {
 public:
  // Rows of the label `ignore_index` don't count either, a class too.
  explicit ConfusionMatrix(int classes, std::int32_t ignore_index = ops::ignored_target);

  template <typename T, typename D>
  void add(const Tensor<T, D>& logits, const Tensor<std::int32_t, D>& labels) {
    add_on_host(detail::on_host(logits), detail::on_host(labels));
  }
  template <typename T, typename D>
  void add(const Variable<T, D>& logits, const Tensor<std::int32_t, D>& labels) {
    add(logits.value(), labels);
  }
  ConfusionMatrix& operator+=(const ConfusionMatrix& other);  // of as many classes

  int classes() const { return classes_; }
  std::int64_t count(int label, int predicted) const;
  std::int64_t support(int label) const;             // rows of this label
  std::int64_t without_prediction(int label) const;  // of these, how many held a NaN

  Mean accuracy() const;
  double precision(int of_class) const;  // of the rows that predict it, the share that has it as label
  double recall(int of_class) const;     // of the rows with this label, the share that predicts it
  double f1(int of_class) const;         // the harmonic mean of both
  double iou(int of_class) const;        // of the rows that predict it or have it as label, the share that does both
  double macro_precision() const;
  double macro_recall() const;
  double macro_f1() const;
  double macro_iou() const;  // mIoU

  friend void all_reduce(const Collectives& ranks, ConfusionMatrix& matrix);

 private:
  template <typename T>
  void add_on_host(const Tensor<T>& logits, const Tensor<std::int32_t>& labels);
  std::int64_t predicted(int of_class) const;  // rows that predict it
  void require_class(int number) const;
  std::size_t place_of(int label, int predicted) const;
  double macro(double (ConfusionMatrix::*of)(int) const) const;

  int classes_;
  std::int32_t ignore_index_;
  std::vector<std::int64_t> counts_;  // [classes, classes + 1]; the last column: no prediction
};

// Each becomes that of all ranks, which all call this, once: afterwards every rank holds what was counted on all.
void all_reduce(const Collectives& ranks, std::span<Mean> means);  // as many on each rank
void all_reduce(const Collectives& ranks, Mean& mean);
void all_reduce(const Collectives& ranks, ConfusionMatrix& matrix);

}  // namespace trireme
