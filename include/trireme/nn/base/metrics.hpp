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

// Metrics of a model's quality. Each rank accumulates metrics over its batches; then the metrics are reduced over the ranks.
//
//   Mean right;
//   for (const auto& batch : batches) right += accuracy(net.forward(batch.images), batch.labels);
//   all_reduce(world, right);
//   log(Severity::info, "accuracy {:.2f} %", 100 * right.value());
//
// Logits are [..., classes]; labels are [...], one label for each row of logits. T: float, double, bfloat16, float16; tensors
// on a GPU are copied to the host. A row predicts the class of its largest logit, or of the first of several largest logits. A
// row with a NaN predicts no class and counts as wrong. Rows with the label ops::ignored_target (-100, data::no_label) don't
// count. Another label outside [0, classes) is an error, and then nothing is counted.
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

// The share of rows whose predicted class is their label.
template <typename T, typename D>
Mean accuracy(const Tensor<T, D>& logits, const Tensor<std::int32_t, D>& labels) {
  return top_k_accuracy(logits, labels, 1);
}
template <typename T, typename D>
Mean accuracy(const Variable<T, D>& logits, const Tensor<std::int32_t, D>& labels) {
  return accuracy(logits.value(), labels);
}

// The mean over a loss's targets. For a loss on a GPU the host waits.
template <typename T, typename D>
Mean mean_of(const Loss<T, D>& loss) {
  return {.sum = static_cast<double>(loss.sum.value().item()), .weight = loss.target_weight.item()};
}

// exp(mean cross-entropy). loss: the sum of mean_of(loss) over all batches and ranks.
double perplexity(const Mean& loss);

// The mean is over all elements. The target has the shape of x, and is float if x is bfloat16 or float16, as in mse_loss.
template <typename T, typename D>
Mean mean_squared_error(const Tensor<T, D>& x, const Tensor<Accumulate<T>, D>& target) {
  return detail::mean_squared_error_on_host(detail::on_host(x), detail::on_host(target));
}
template <typename T, typename D>
Mean mean_squared_error(const Variable<T, D>& x, const Tensor<Accumulate<T>, D>& target) {
  return mean_squared_error(x.value(), target);
}

// Counts how many rows of each label predict each class. Precision, recall and F1 are those of scikit-learn's
// precision_recall_fscore_support(labels, predicted, labels=range(classes), zero_division=0). Intersection over union is as in
// scikit-learn's jaccard_score(). A quotient with denominator 0 is 0, and macro averages are over all classes, including
// classes that never occur.
//
//   ConfusionMatrix matrix(10);
//   for (const auto& batch : batches) matrix.add(net.forward(batch.images), batch.labels);
//   all_reduce(world, matrix);
//   const double f1 = matrix.macro_f1();
class ConfusionMatrix {
 public:
  // Rows with the label `ignore_index` don't count either; `ignore_index` may be one of the classes.
  explicit ConfusionMatrix(int classes, std::int32_t ignore_index = ops::ignored_target);

  template <typename T, typename D>
  void add(const Tensor<T, D>& logits, const Tensor<std::int32_t, D>& labels) {
    add_on_host(detail::on_host(logits), detail::on_host(labels));
  }
  template <typename T, typename D>
  void add(const Variable<T, D>& logits, const Tensor<std::int32_t, D>& labels) {
    add(logits.value(), labels);
  }
  ConfusionMatrix& operator+=(const ConfusionMatrix& other);  // both must have the same number of classes

  int classes() const { return classes_; }
  std::int64_t count(int label, int predicted) const;
  std::int64_t support(int label) const;             // rows of this label
  std::int64_t without_prediction(int label) const;  // rows of this label with a NaN

  Mean accuracy() const;
  double precision(int of_class) const;  // of the rows that predict this class, the share with this label
  double recall(int of_class) const;     // share of the rows with this label that predict the class
  double f1(int of_class) const;         // harmonic mean of precision and recall
  double iou(int of_class) const;        // rows with this label and prediction / rows with this label or prediction
  double macro_precision() const;
  double macro_recall() const;
  double macro_f1() const;
  double macro_iou() const;  // mIoU

  friend void all_reduce(const Collectives& ranks, ConfusionMatrix& matrix);

 private:
  template <typename T>
  void add_on_host(const Tensor<T>& logits, const Tensor<std::int32_t>& labels);
  std::int64_t predicted(int of_class) const;  // rows that predict this class
  void require_class(int number) const;
  std::size_t place_of(int label, int predicted) const;
  double macro(double (ConfusionMatrix::*of)(int) const) const;

  int classes_;
  std::int32_t ignore_index_;
  std::vector<std::int64_t> counts_;  // [classes, classes + 1]; the last column: no prediction
};

// Sums the counts of all ranks; every rank gets the result. All ranks must call all_reduce(), and only once for the same
// counts.
void all_reduce(const Collectives& ranks, std::span<Mean> means);  // as many means on each rank
void all_reduce(const Collectives& ranks, Mean& mean);
void all_reduce(const Collectives& ranks, ConfusionMatrix& matrix);

}  // namespace trireme
