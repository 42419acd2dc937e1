#include "ops/cuda_compare.hpp"
#include "trireme/ops/loss/loss.hpp"

// The cross-entropy of a GPU against that of the CPU.
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

template <typename T>
void check(std::int64_t rows, std::int64_t classes, bool smoothed, bool weighted) {
  using A = Accumulate<T>;
  CAPTURE(rows, classes, smoothed, weighted);
  const auto logits = random_tensor<T>({rows, classes}, 1, 5);
  const auto logits_there = logits.template to<Cuda>();
  const auto targets = targets_of(rows, classes);
  const auto targets_there = targets.to<Cuda>();
  CrossEntropyOptions<A, Cpu> options{.label_smoothing = smoothed ? 0.1 : 0};
  CrossEntropyOptions<A, Cuda> options_there{.label_smoothing = options.label_smoothing};
  if (weighted) {
    options.class_weight = random_tensor<A>({classes}, 2);
    options_there.class_weight = options.class_weight.template to<Cuda>();
  }
  Tensor<A> exponentials({2, rows});
  Tensor<A, Cuda> exponentials_there({2, rows});
  const auto result = cross_entropy(logits, targets, exponentials, options);
  const auto result_there = cross_entropy(logits_there, targets_there, exponentials_there, options_there);
  const auto close = [](double sum) { return Approx(sum).epsilon(tolerance<A>(1e-5)).margin(tolerance<A>(1e-5)); };
  CHECK(result_there.sum.item() == close(result.sum));
  CHECK(result_there.target_weight.item() == Approx(result.target_weight));
  require_same(exponentials_there, exponentials, 10);

  Tensor<A> losses({rows});
  Tensor<A, Cuda> losses_there({rows});
  cross_entropy_rows(logits, targets, exponentials, losses, options);
  cross_entropy_rows(logits_there, targets_there, exponentials_there, losses_there, options_there);
  require_same(losses_there, losses, 10);

  Tensor<T> dlogits(logits.shape());
  Tensor<T, Cuda> dlogits_there(logits.shape());
  const auto dlosses = random_tensor<A>({rows}, 3);
  cross_entropy_rows_backward(logits, targets, exponentials, dlosses, dlogits, options);
  cross_entropy_rows_backward(logits_there, targets_there, exponentials_there, dlosses.template to<Cuda>(), dlogits_there,
                              options_there);
  require_same(dlogits_there, dlogits, 10);

  cross_entropy_backward(logits, targets, exponentials, A(0.25), dlogits, options);
  const Scalar<A, Cuda> quarter_there(Tensor<A, Cuda>::full({}, A(0.25)));
  dlogits_there = logits_there.clone();
  cross_entropy_backward(dlogits_there, targets_there, exponentials_there, quarter_there, dlogits_there, options_there);
  require_same(dlogits_there, dlogits, 10);

  dlogits_there = logits_there.clone();
  Tensor<double, Cuda> sums({3});
  cross_entropy_in_place(dlogits_there, targets_there, A(0.25), sums, options_there);
  require_same(dlogits_there, dlogits, 10);
  CHECK(cross_entropy_result(sums, targets_there, classes).sum == close(result.sum));
}

}  // namespace

TEMPLATE_TEST_CASE("cross-entropy on the GPU", "", float, double, bfloat16, float16) {
  for (const bool smoothed : {false, true}) {
    for (const bool weighted : {false, true}) {
      check<TestType>(1, 1, smoothed, weighted);
      check<TestType>(23, 10, smoothed, weighted);
      check<TestType>(3000, 64, smoothed, weighted);
      check<TestType>(13, 3001, smoothed, weighted);
      check<TestType>(70, 50'304, smoothed, weighted);
    }
  }
}

TEST_CASE("on the GPU a target that is no class makes the loss NaN, and the first row is named where the host waits") {
  const auto logits = Tensor<float, Cuda>::zeros({2, 2, 4});
  Tensor<float, Cuda> exponentials({2, 2, 2});
  for (const std::int32_t wrong : {4, -1}) {
    const std::int32_t values[] = {0, ignored_target, wrong, 77};
    const auto targets = Tensor<std::int32_t, Cuda>::from({2, 2}, values);
    CHECK(std::isnan(cross_entropy(logits, targets, exponentials).sum.item()));
    Tensor<double, Cuda> sums({3});
    cross_entropy_sums(logits, targets, exponentials, sums);
    CHECK_THROWS_WITH(cross_entropy_result(sums, targets, 4),
                      "cross_entropy: the target of row 2 is " + std::to_string(wrong) + ", but must lie in [0, 4) or be -100");
    Tensor<float, Cuda> losses({4});
    cross_entropy_rows(logits, targets, exponentials, losses);
    CHECK(std::isnan(losses.to<Cpu>().data()[2]));
  }
}
