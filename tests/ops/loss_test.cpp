#include "trireme/ops/loss/loss.hpp"

#include <limits>
#include <utility>

#include "ops/compare.hpp"
#include "ops/threads.hpp"

using namespace trireme;
using namespace trireme::ops;

namespace {

Tensor<std::int32_t> targets_of(std::int64_t rows, std::int64_t classes) {
  Tensor<std::int32_t> targets({rows});
  for (std::int64_t row = 0; row < rows; ++row) {
    targets.data()[row] = row % 5 == 3 ? ignored_target : static_cast<std::int32_t>((row * 7) % classes);
  }
  return targets;
}

}  // namespace

TEMPLATE_TEST_CASE("cross-entropy forward and backward", "", float, double) {
  using T = TestType;
  for (const std::int64_t classes : {1, 3, 50, 257}) {
    constexpr std::int64_t rows = 23;
    const auto logits = random_tensor<T>({rows, classes}, 1, 5);
    const auto targets = targets_of(rows, classes);
    double loss = 0;
    double target_weight = 0;
    Doubles lse;
    Doubles gradient;
    for (std::int64_t row = 0; row < rows; ++row) {
      const T* x = logits.data() + row * classes;
      double sum = 0;
      for (std::int64_t j = 0; j < classes; ++j) sum += std::exp(static_cast<double>(x[j]));
      lse.push_back(std::log(sum));
      const std::int32_t target = targets.data()[row];
      for (std::int64_t j = 0; j < classes; ++j) {
        const double p = std::exp(static_cast<double>(x[j])) / sum;
        gradient.push_back(target == ignored_target ? 0 : 0.25 * (p - (j == target ? 1 : 0)));
      }
      if (target == ignored_target) continue;
      loss += lse.back() - static_cast<double>(x[target]);
      ++target_weight;
    }
    Tensor<T> exponentials({2, rows});
    const auto result = cross_entropy(logits, targets, exponentials);
    CHECK(result.target_weight == target_weight);
    CHECK(result.sum == Approx(loss).epsilon(tolerance<T>(1e-6)).margin(tolerance<T>(1e-6)));
    require_close(log_sums(exponentials), lse, tolerance<T>(1e-6));

    Tensor<T> dlogits = Tensor<T>::full(logits.shape(), 9);
    cross_entropy_backward(logits, targets, exponentials, T(0.25), dlogits);
    require_close(dlogits, gradient, tolerance<T>(1e-6));
    Tensor<T> in_place = logits.clone();
    cross_entropy_backward(in_place, targets, exponentials, T(0.25), in_place);
    require_identical(in_place, dlogits);

    in_place = logits.clone();
    Tensor<double> sums({3});
    cross_entropy_in_place(in_place, targets, T(0.25), sums);
    require_identical(in_place, dlogits);
    CHECK(cross_entropy_result(sums, targets, classes).sum == result.sum);
  }
}

TEMPLATE_TEST_CASE("cross-entropy of smoothed labels", "", float, double) {
  using T = TestType;
  constexpr std::int64_t rows = 23;
  constexpr double smoothing = 0.3;
  for (const std::int64_t classes : {1, 3, 50, 257}) {
    for (const bool weighted : {false, true}) {
      CAPTURE(classes, weighted);
      const auto logits = random_tensor<T>({rows, classes}, 1, 5);
      const auto targets = targets_of(rows, classes);
      Tensor<T> weight({classes});
      for (std::int64_t j = 0; j < classes; ++j)
        weight.data()[j] = weighted ? static_cast<T>(0.5 + 0.25 * double(j % 4)) : T(1);
      double loss = 0;
      Doubles gradient(static_cast<std::size_t>(logits.numel()), 0.0);
      for (std::int64_t row = 0; row < rows; ++row) {
        const std::int32_t target = targets.data()[row];
        if (target == ignored_target) continue;
        const T* x = logits.data() + row * classes;
        double sum = 0;
        for (std::int64_t j = 0; j < classes; ++j) sum += std::exp(static_cast<double>(x[j]));
        for (std::int64_t j = 0; j < classes; ++j) {  // each class by its share of the labels
          const double share = smoothing / static_cast<double>(classes) + (j == target ? 1 - smoothing : 0);
          const double of_class = share * static_cast<double>(weight.data()[j]);
          loss += of_class * (std::log(sum) - static_cast<double>(x[j]));
          for (std::int64_t i = 0; i < classes; ++i) {
            const double p = std::exp(static_cast<double>(x[i])) / sum;
            gradient[static_cast<std::size_t>(row * classes + i)] += 0.25 * of_class * (p - (i == j ? 1 : 0));
          }
        }
      }
      const CrossEntropyOptions<T, Cpu> options{.label_smoothing = smoothing, .class_weight = weighted ? weight : Tensor<T>()};
      Tensor<T> exponentials({2, rows}), dlogits(logits.shape()), losses({rows});
      CHECK(cross_entropy(logits, targets, exponentials, options).sum ==
            Approx(loss).epsilon(tolerance<T>(1e-6)).margin(tolerance<T>(1e-6)));
      cross_entropy_backward(logits, targets, exponentials, T(0.25), dlogits, options);
      require_close(dlogits, gradient, tolerance<T>(4e-6));
      cross_entropy_rows(logits, targets, exponentials, losses, options);
      double total = 0;
      for (const T of_row : losses.span()) total += static_cast<double>(of_row);
      CHECK(total == Approx(loss).epsilon(tolerance<T>(4e-6)).margin(tolerance<T>(1e-6)));
    }
  }
}

// Whole numbers up to 5, and beside them an offset that float holds: all differences are exact.
TEST_CASE("cross-entropy of large logits has the bits of small ones") {
  constexpr std::int64_t rows = 23, classes = 50;
  const auto targets = targets_of(rows, classes);
  const auto weight = random_tensor<float>({classes}, 2);
  for (const double smoothing : {0.0, 0.3}) {
    for (const bool weighted : {false, true}) {
      const CrossEntropyOptions<float, Cpu> options{.label_smoothing = smoothing,
                                                    .class_weight = weighted ? weight : Tensor<float>()};
      const auto run = [&](float offset, float factor) {
        Tensor<float> logits({rows, classes}), exponentials({2, rows}), dlogits(logits.shape()), losses({rows});
        for (std::int64_t i = 0; i < logits.numel(); ++i) {
          logits.data()[i] = offset + factor * static_cast<float>(i * i % 7 % 6);
        }
        Doubles results{cross_entropy(logits, targets, exponentials, options).sum};
        cross_entropy_backward(logits, targets, exponentials, 0.25F, dlogits, options);
        cross_entropy_rows(logits, targets, exponentials, losses, options);
        Tensor<double> sums({3});
        cross_entropy_in_place(logits, targets, 0.25F, sums, options);
        for (const auto& part : {as_doubles(dlogits), as_doubles(losses), as_doubles(logits), as_doubles(sums)}) {
          results.insert(results.end(), part.begin(), part.end());
        }
        return results;
      };
      const Doubles small = run(0, 1);
      for (const float offset : {1e5F, -1e6F, 1e7F}) {
        CAPTURE(smoothing, weighted, offset);
        CHECK((run(offset, 1) == small));
      }
      CHECK((run(1e30F, 0) == run(0, 0)));
    }
  }
}

TEST_CASE("cross-entropy of rows that hold -infinity alone is nan") {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  Tensor<float> logits = Tensor<float>::full({1, 20}, -infinity);
  Tensor<float> exponentials({2, 1}), dlogits(logits.shape());
  const auto target = Tensor<std::int32_t>::full({1}, 3);
  CHECK(std::isnan(cross_entropy(logits, target, exponentials).sum));
  cross_entropy_backward(logits, target, exponentials, 1.0F, dlogits);
  for (const float element : dlogits.span()) CHECK(std::isnan(element));
}

TEST_CASE("cross-entropy gives the same bits for any number of threads") {
  const auto logits = random_tensor<float>({3000, 40}, 1);
  const auto targets = targets_of(3000, 40);
  for (const double smoothing : {0.0, 0.1}) {
    const CrossEntropyOptions<float, Cpu> options{.label_smoothing = smoothing};
    const auto run = [&](int threads) {
      Tensor<float> exponentials({2, 3000}), losses({3000});
      double sum = 0;
      with_threads(threads, [&] {
        sum = cross_entropy(logits, targets, exponentials, options).sum;
        cross_entropy_rows(logits, targets, exponentials, losses, options);
      });
      return std::pair(sum, as_doubles(losses));
    };
    CHECK(run(1) == run(3));
  }
}

TEST_CASE("cross-entropy refuses a target that is no class") {
  const auto logits = Tensor<float>::zeros({3, 4});
  Tensor<float> exponentials({2, 3});
  for (const std::int32_t wrong : {4, -1}) {
    const std::int32_t values[] = {0, ignored_target, wrong};
    CHECK_THROWS_WITH(
        cross_entropy(logits, Tensor<std::int32_t>::from({3}, values), exponentials),
        ContainsSubstring("the target of row 2 is " + std::to_string(wrong) + ", but must lie in [0, 4) or be -100"));
  }
}
