#include "trireme/nn/base/metrics.hpp"

#include <array>
#include <cmath>
#include <limits>

#include "catch.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/data/images/image_batch.hpp"
#include "trireme/ops/loss/ignored_target.hpp"
#include "trireme/testing/ranks.hpp"

using namespace trireme;

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr std::int32_t ignored = ops::ignored_target;
static_assert(ignored == data::no_label);

template <typename T = float>
Tensor<T> logits(const Shape& shape, std::initializer_list<double> values) {
  Tensor<T> tensor(shape);
  std::size_t at = 0;
  for (const double value : values) tensor.span()[at++] = static_cast<T>(static_cast<Accumulate<T>>(value));
  return tensor;
}

Tensor<std::int32_t> labels(std::initializer_list<std::int32_t> values) {
  return Tensor<std::int32_t>::from({static_cast<std::int64_t>(values.size())}, values);
}

// Logits whose largest is that of `predicted`; -1: a row with a NaN.
Tensor<float> predicting(const std::vector<int>& predicted, std::int64_t classes) {
  auto result = Tensor<float>::full({std::ssize(predicted), classes}, -1);
  for (std::size_t row = 0; row < predicted.size(); ++row) {
    const bool none = predicted[row] < 0;
    result.at(row, none ? 0 : predicted[row]) = none ? std::numeric_limits<float>::quiet_NaN() : 2.0F;
  }
  return result;
}

// Labels and predictions from which scikit-learn 1.9 computed the numbers below; class 4 never occurs, class 3 is never
// predicted.
const std::initializer_list<std::int32_t> true_labels{0, 1, 2, 2, 0, 3, 1, 0, 2, 3, 0, 1};
const std::vector<int> predictions{0, 2, 2, 1, 0, 0, 1, 2, 2, 1, 0, 1};

}  // namespace

TEMPLATE_TEST_CASE("accuracy counts the rows whose largest logit is their label's", "", float, double, bfloat16, float16) {
  using T = TestType;
  const auto y = logits<T>({2, 2, 3}, {1, 2, 3, 3, 2, 1, 0, 5, 4, -1, -2, -3});
  const auto of = Tensor<std::int32_t>::from({2, 2}, {2, 0, 2, 0});
  CHECK(accuracy(y, of) == Mean{3, 4});
  CHECK(accuracy(Variable<T>(y), of) == Mean{3, 4});
  CHECK(top_k_accuracy(y, of, 1) == Mean{3, 4});
  CHECK(top_k_accuracy(y, of, 2) == Mean{4, 4});
  CHECK(top_k_accuracy(Variable<T>(y), Tensor<std::int32_t>::from({2, 2}, {0, 2, 0, 2}), 2) == Mean{0, 4});
  CHECK(top_k_accuracy(y, Tensor<std::int32_t>::from({2, 2}, {0, 2, 0, 2}), 3) == Mean{4, 4});
}

TEST_CASE("of equal logits the first counts, infinities are ordered, a row with a NaN is wrong") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const auto y = logits(
      {6, 3}, {1, 1, 1, 1, 1, 1, -infinity, -infinity, 0, infinity, 1, infinity, not_a_number, 1, 2, 1, 2, not_a_number});
  CHECK(accuracy(y, labels({0, 1, 2, 0, 0, 2})) == Mean{3, 6});
  CHECK(accuracy(y, labels({1, 0, 0, 2, 2, 1})) == Mean{1, 6});
  CHECK(top_k_accuracy(y, labels({1, 2, 0, 2, 2, 1}), 2) == Mean{3, 6});
  CHECK(top_k_accuracy(y, labels({2, 2, 1, 1, 0, 0}), 3) == Mean{4, 6});
}

TEST_CASE("rows without a label don't count") {
  const auto y = predicting({0, 1, 2, -1}, 3);
  CHECK(accuracy(y, labels({0, ignored, 1, ignored})) == Mean{1, 2});
  CHECK(accuracy(y, labels({ignored, ignored, ignored, ignored})) == Mean{0, 0});
  CHECK(std::isnan(accuracy(y, labels({ignored, ignored, ignored, ignored})).value()));
  CHECK(accuracy(Tensor<float>({0, 3}), labels({})) == Mean{0, 0});
  ConfusionMatrix matrix(3);
  matrix.add(y, labels({0, ignored, 1, ignored}));
  CHECK(matrix.accuracy() == Mean{1, 2});
  CHECK(matrix.support(0) + matrix.support(1) + matrix.support(2) == 2);
}

TEST_CASE("what does not fit is refused before anything is counted") {
  const auto y = predicting({0, 1}, 3);
  CHECK_THROWS_WITH(accuracy(y, labels({0, 3})),
                    ContainsSubstring("accuracy: label 1 is 3, but must lie in [0, 3), or be -100"));
  CHECK_THROWS_WITH(accuracy(y, labels({-1, 0})), ContainsSubstring("accuracy: label 0 is -1"));
  CHECK_THROWS_WITH(accuracy(y, labels({0})), ContainsSubstring("logits of shape [2, 3] need 2 labels"));
  CHECK_THROWS_WITH(accuracy(Tensor<float>(), labels({0})), ContainsSubstring("accuracy: the logits are undefined"));
  CHECK_THROWS_WITH(accuracy(y, Tensor<std::int32_t>()), ContainsSubstring("accuracy: the labels are undefined"));
  CHECK_THROWS_WITH(accuracy(Tensor<float>({2, 0}), labels({0, 0})), ContainsSubstring("logits are [..., classes]"));
  CHECK_THROWS_WITH(top_k_accuracy(y, labels({0, 1}), 0), ContainsSubstring("k lies in [1, 3], the number of classes, got 0"));
  CHECK_THROWS_WITH(top_k_accuracy(y, labels({0, 1}), 4), ContainsSubstring("got 4"));
  ConfusionMatrix matrix(3);
  CHECK_THROWS_WITH(matrix.add(y, labels({0, 7})), ContainsSubstring("ConfusionMatrix: label 1 is 7"));
  CHECK(matrix.accuracy() == Mean{0, 0});
  CHECK_THROWS_WITH(matrix.add(predicting({0}, 4), labels({0})), ContainsSubstring("of 3 classes got logits of shape [1, 4]"));
  CHECK_THROWS_WITH(matrix.precision(3), "a confusion matrix of 3 classes has no class 3");
  CHECK_THROWS_WITH(matrix.support(-1), ContainsSubstring("has no class -1"));
  CHECK_THROWS_WITH(matrix.count(0, 3), ContainsSubstring("has no class 3"));
  CHECK_THROWS_WITH(matrix += ConfusionMatrix(4), ContainsSubstring("of 3 and 4 classes can't be added"));
  CHECK_THROWS_WITH(ConfusionMatrix(0), ContainsSubstring("classes above 0, got 0"));
}

TEST_CASE("precision, recall and F1 are scikit-learn's") {
  ConfusionMatrix matrix(5);
  matrix.add(predicting(predictions, 5), labels(true_labels));
  CHECK(matrix.count(0, 0) == 3);
  CHECK(matrix.count(3, 0) == 1);
  const std::array precision{0.75, 0.5, 0.5, 0.0, 0.0};
  const std::array recall{0.75, 2.0 / 3, 2.0 / 3, 0.0, 0.0};
  const std::array f1{0.75, 0.5714285714285714, 0.5714285714285714, 0.0, 0.0};
  const std::array<std::int64_t, 5> support{4, 3, 3, 2, 0};
  for (int each = 0; each < 5; ++each) {
    CAPTURE(each);
    const auto at = static_cast<std::size_t>(each);
    CHECK(matrix.precision(each) == Approx(precision[at]));
    CHECK(matrix.recall(each) == Approx(recall[at]));
    CHECK(matrix.f1(each) == Approx(f1[at]));
    CHECK(matrix.support(each) == support[at]);
  }
  CHECK(matrix.macro_precision() == Approx(0.35));
  CHECK(matrix.macro_recall() == Approx(0.4166666666666667));
  CHECK(matrix.macro_f1() == Approx(0.3785714285714286));
  CHECK(matrix.accuracy() == Mean{7, 12});
}

TEST_CASE("a row with a NaN lowers the recall of its label, and no precision") {
  ConfusionMatrix matrix(2);
  matrix.add(predicting({0, -1, 1}, 2), labels({0, 0, 1}));
  CHECK(matrix.without_prediction(0) == 1);
  CHECK(matrix.without_prediction(1) == 0);
  CHECK(matrix.support(0) == 2);
  CHECK(matrix.recall(0) == 0.5);
  CHECK(matrix.precision(0) == 1);
  CHECK(matrix.precision(1) == 1);
  CHECK(matrix.f1(0) == Approx(2.0 / 3));
  CHECK(matrix.accuracy() == Mean{2, 3});
}

TEST_CASE("intersection over union counts what is predicted or labelled once") {
  ConfusionMatrix matrix(4);
  matrix.add(predicting({0, 1, 1, 1, 0}, 4), labels({0, 0, 1, 1, 2}));
  CHECK(matrix.iou(0) == Approx(1.0 / 3));
  CHECK(matrix.iou(1) == Approx(2.0 / 3));
  CHECK(matrix.iou(2) == 0);
  CHECK(matrix.iou(3) == 0);  // neither predicted nor a label
  CHECK(matrix.macro_iou() == Approx(0.25));
}

TEST_CASE("a confusion matrix leaves out the label that it is told") {
  ConfusionMatrix matrix(2, 255);
  matrix.add(predicting({0, 1, 1, 0}, 2), labels({0, 255, 1, ignored}));
  CHECK(matrix.accuracy() == Mean{2, 2});
  CHECK_THROWS_WITH(matrix.add(predicting({0}, 2), labels({2})), ContainsSubstring("or be 255 where a row doesn't count"));
  ConfusionMatrix without_background(2, 0);
  without_background.add(predicting({0, 1, 0}, 2), labels({0, 1, 1}));
  CHECK(without_background.support(0) == 0);
  CHECK(without_background.recall(1) == 0.5);
}

TEST_CASE("the mean of a loss counts the targets that count") {
  const Mean mean = mean_of(cross_entropy(Variable<float>(logits({2, 2}, {0, 0, 0, 0})), labels({1, ignored})));
  CHECK(mean.sum == Approx(std::log(2.0)));
  CHECK(mean.weight == 1);
}

TEST_CASE("the perplexity is that of the mean loss") {
  CHECK(perplexity({std::log(8.0), 1}) == Approx(8));
  CHECK(perplexity({4 * std::log(3.0), 4}) == Approx(3));
  CHECK(std::isnan(perplexity({})));
}

TEMPLATE_TEST_CASE("the mean squared error counts each element", "", float, double, bfloat16, float16) {
  using T = TestType;
  const auto x = logits<T>({2, 2}, {1, 2, 3, 4});
  const auto target = logits<Accumulate<T>>({2, 2}, {1, 0, 3, 5});
  CHECK(mean_squared_error(x, target) == Mean{5, 4});
  CHECK(mean_squared_error(Variable<T>(x), target) == Mean{5, 4});
  CHECK(std::isnan(mean_squared_error(logits<T>({1}, {not_a_number}), logits<Accumulate<T>>({1}, {1})).value()));
  CHECK_THROWS_WITH(mean_squared_error(x, logits<Accumulate<T>>({4}, {1, 0, 3, 5})),
                    ContainsSubstring("x has shape [2, 2], but the target [4]"));
  CHECK_THROWS_WITH(mean_squared_error(Tensor<T>(), target), ContainsSubstring("mean_squared_error: x is undefined"));
}

TEST_CASE("metrics of parts, added over ranks, are those of the whole") {
  const std::vector<std::int32_t> all(true_labels);
  ConfusionMatrix whole(5);
  whole.add(predicting(predictions, 5), labels(true_labels));
  for (const int ranks : {1, 3}) {
    testing::run_ranks(ranks, [&](const Group& world) {
      ConfusionMatrix matrix(5);
      std::array<Mean, 2> means;
      for (std::size_t row = 0; row < all.size(); ++row) {
        if (static_cast<int>(row * row) % world.size() != world.rank()) continue;  // ranks with different numbers of rows
        const auto y = predicting({predictions[row]}, 5);
        matrix.add(y, labels({all[row]}));
        means[0] += accuracy(y, labels({all[row]}));
        means[1] += top_k_accuracy(y, labels({all[row]}), 2);
      }
      Mean alone = means[0];
      all_reduce(world, matrix);
      all_reduce(world, means);
      all_reduce(world, alone);
      require(alone == Mean{7, 12} && means[0] == alone, "accuracy of {} of {}", alone.sum, alone.weight);
      require(means[1].weight == 12, "counted {}", means[1].weight);
      for (int label = 0; label < 5; ++label) {
        require(matrix.support(label) == whole.support(label), "support of {}", label);
        for (int predicted = 0; predicted < 5; ++predicted) {
          require(matrix.count(label, predicted) == whole.count(label, predicted), "count of {}, {}", label, predicted);
        }
      }
    });
  }
}
