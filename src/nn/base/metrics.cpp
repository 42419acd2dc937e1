#include "trireme/nn/base/metrics.hpp"

#include <cmath>

#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"

namespace trireme {
namespace {

// Checks shapes and labels, and returns the number of classes.
std::int64_t checked_classes(std::string_view metric, const auto& logits, const Tensor<std::int32_t>& labels,
                             std::int32_t ignore_index = ops::ignored_target) {
  require(logits.defined() && labels.defined(), "{}: {} are undefined", metric, logits.defined() ? "the labels" : "the logits");
  require(logits.shape().size() > 0 && logits.shape().back() > 0, "{}: logits are [..., classes], not of shape {}", metric,
          logits.shape());
  require(logits.shape().rows() == labels.numel(), "{}: logits of shape {} need {} labels, one for each row, not those of {}",
          metric, logits.shape(), logits.shape().rows(), labels.shape());
  const std::int64_t classes = logits.shape().back();
  for (const std::int32_t& label : labels.span()) {
    require(label == ops::ignored_target || label == ignore_index || (label >= 0 && label < classes),
            "{}: label {} is {}, but must lie in [0, {}), or be {} where a row doesn't count", metric, &label - labels.data(),
            label, classes, ignore_index);
  }
  return classes;
}

template <typename T>
bool has_nan(std::span<const T> row) {
  for (const T logit : row) {
    if (std::isnan(static_cast<Accumulate<T>>(logit))) return true;
  }
  return false;
}

// How many classes rank before this one: those with a larger logit, and earlier ones with an equal logit.
template <typename T>
std::int64_t classes_before(std::span<const T> row, std::size_t label) {
  const auto of_label = static_cast<Accumulate<T>>(row[label]);
  std::int64_t before = 0;
  for (std::size_t other = 0; other < row.size(); ++other) {
    const auto logit = static_cast<Accumulate<T>>(row[other]);
    if (logit > of_label || (logit == of_label && other < label)) ++before;
  }
  return before;
}

template <typename T>
std::int64_t most_likely(std::span<const T> row) {
  std::size_t best = 0;
  for (std::size_t other = 1; other < row.size(); ++other) {
    if (static_cast<Accumulate<T>>(row[other]) > static_cast<Accumulate<T>>(row[best])) best = other;
  }
  return static_cast<std::int64_t>(best);
}

// Calls visit(row, label) for each row that counts.
template <typename T>
void each_row(const Tensor<T>& logits, const Tensor<std::int32_t>& labels, std::int32_t ignore_index, const auto& visit) {
  const auto classes = static_cast<std::size_t>(logits.shape().back());
  for (std::size_t row = 0; row < labels.span().size(); ++row) {
    const std::int32_t label = labels.span()[row];
    if (label == ops::ignored_target || label == ignore_index) continue;
    visit(std::span<const T>(logits.data() + row * classes, classes), static_cast<std::size_t>(label));
  }
}

double quotient(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

namespace detail {

template <typename T>
Mean top_k_accuracy_on_host(const Tensor<T>& logits, const Tensor<std::int32_t>& labels, int k) {
  const std::string_view metric = k == 1 ? "accuracy" : "top_k_accuracy";
  const std::int64_t classes = checked_classes(metric, logits, labels);
  require(k >= 1 && k <= classes, "top_k_accuracy: k lies in [1, {}], the number of classes, got {}", classes, k);
  Mean right;
  each_row(logits, labels, ops::ignored_target, [&](std::span<const T> row, std::size_t label) {
    right.add(!has_nan(row) && classes_before(row, label) < k ? 1 : 0);
  });
  return right;
}

template <typename T>
Mean mean_squared_error_on_host(const Tensor<T>& x, const Tensor<Accumulate<T>>& target) {
  require(x.defined() && target.defined(), "mean_squared_error: {} is undefined", x.defined() ? "the target" : "x");
  require(x.shape() == target.shape(), "mean_squared_error: x has shape {}, but the target {}", x.shape(), target.shape());
  Mean error;
  for (std::size_t at = 0; at < x.span().size(); ++at) {
    const double difference = static_cast<double>(x.span()[at]) - static_cast<double>(target.span()[at]);
    error.add(difference * difference);
  }
  return error;
}

#define TRIREME_INSTANTIATE(T)                                                              \
  template Mean top_k_accuracy_on_host(const Tensor<T>&, const Tensor<std::int32_t>&, int); \
  template Mean mean_squared_error_on_host(const Tensor<T>&, const Tensor<Accumulate<T>>&)
TRIREME_INSTANTIATE(float);
TRIREME_INSTANTIATE(double);
TRIREME_INSTANTIATE(bfloat16);
TRIREME_INSTANTIATE(float16);
#undef TRIREME_INSTANTIATE

}  // namespace detail

double perplexity(const Mean& loss) { return std::exp(loss.value()); }

ConfusionMatrix::ConfusionMatrix(int classes, std::int32_t ignore_index) : classes_(classes), ignore_index_(ignore_index) {
  require(classes > 0, "a confusion matrix needs classes above 0, got {}", classes);
  const auto rows = static_cast<std::size_t>(classes);
  counts_.resize(rows * (rows + 1));
}

std::size_t ConfusionMatrix::place_of(int label, int predicted) const {
  return static_cast<std::size_t>(label) * (static_cast<std::size_t>(classes_) + 1) + static_cast<std::size_t>(predicted);
}

void ConfusionMatrix::require_class(int number) const {
  require(number >= 0 && number < classes_, "a confusion matrix of {} classes has no class {}", classes_, number);
}

template <typename T>
void ConfusionMatrix::add_on_host(const Tensor<T>& logits, const Tensor<std::int32_t>& labels) {
  const std::int64_t classes = checked_classes("ConfusionMatrix", logits, labels, ignore_index_);
  require(classes == classes_, "a confusion matrix of {} classes got logits of shape {}", classes_, logits.shape());
  each_row(logits, labels, ignore_index_, [&](std::span<const T> row, std::size_t label) {
    const std::int64_t predicted = has_nan(row) ? classes : most_likely(row);
    ++counts_[place_of(static_cast<int>(label), static_cast<int>(predicted))];
  });
}
template void ConfusionMatrix::add_on_host(const Tensor<float>&, const Tensor<std::int32_t>&);
template void ConfusionMatrix::add_on_host(const Tensor<double>&, const Tensor<std::int32_t>&);
template void ConfusionMatrix::add_on_host(const Tensor<bfloat16>&, const Tensor<std::int32_t>&);
template void ConfusionMatrix::add_on_host(const Tensor<float16>&, const Tensor<std::int32_t>&);

ConfusionMatrix& ConfusionMatrix::operator+=(const ConfusionMatrix& other) {
  require(classes_ == other.classes_, "confusion matrices of {} and {} classes can't be added", classes_, other.classes_);
  for (std::size_t place = 0; place < counts_.size(); ++place) counts_[place] += other.counts_[place];
  return *this;
}

std::int64_t ConfusionMatrix::count(int label, int predicted) const {
  require_class(label);
  require_class(predicted);
  return counts_[place_of(label, predicted)];
}

std::int64_t ConfusionMatrix::without_prediction(int label) const {
  require_class(label);
  return counts_[place_of(label, classes_)];
}

std::int64_t ConfusionMatrix::support(int label) const {
  std::int64_t rows = without_prediction(label);
  for (int predicted = 0; predicted < classes_; ++predicted) rows += count(label, predicted);
  return rows;
}

std::int64_t ConfusionMatrix::predicted(int of_class) const {
  std::int64_t rows = 0;
  for (int label = 0; label < classes_; ++label) rows += count(label, of_class);
  return rows;
}

Mean ConfusionMatrix::accuracy() const {
  Mean right;
  for (int label = 0; label < classes_; ++label) {
    right += {static_cast<double>(count(label, label)), static_cast<double>(support(label))};
  }
  return right;
}

double ConfusionMatrix::precision(int of_class) const { return quotient(count(of_class, of_class), predicted(of_class)); }
double ConfusionMatrix::recall(int of_class) const { return quotient(count(of_class, of_class), support(of_class)); }
double ConfusionMatrix::f1(int of_class) const {
  return quotient(2 * count(of_class, of_class), predicted(of_class) + support(of_class));
}
double ConfusionMatrix::iou(int of_class) const {
  const std::int64_t both = count(of_class, of_class);
  return quotient(both, predicted(of_class) + support(of_class) - both);
}

double ConfusionMatrix::macro(double (ConfusionMatrix::*of)(int) const) const {
  double sum = 0;
  for (int each = 0; each < classes_; ++each) sum += (this->*of)(each);
  return sum / classes_;
}
double ConfusionMatrix::macro_precision() const { return macro(&ConfusionMatrix::precision); }
double ConfusionMatrix::macro_recall() const { return macro(&ConfusionMatrix::recall); }
double ConfusionMatrix::macro_f1() const { return macro(&ConfusionMatrix::f1); }
double ConfusionMatrix::macro_iou() const { return macro(&ConfusionMatrix::iou); }

void all_reduce(const Collectives& ranks, std::span<Mean> means) {
  std::vector<double> numbers;
  for (const Mean& mean : means) numbers.insert(numbers.end(), {mean.sum, mean.weight});
  ranks.all_reduce(std::span(numbers), ReduceOp::sum, "means").wait_on_host();
  for (std::size_t at = 0; at < means.size(); ++at) means[at] = {numbers[2 * at], numbers[2 * at + 1]};
}
void all_reduce(const Collectives& ranks, Mean& mean) { all_reduce(ranks, std::span(&mean, 1)); }
void all_reduce(const Collectives& ranks, ConfusionMatrix& matrix) {
  ranks.all_reduce(std::span(matrix.counts_), ReduceOp::sum, "confusion matrix").wait_on_host();
}

}  // namespace trireme
