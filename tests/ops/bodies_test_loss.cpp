#include "ops/loss/loss_body.hpp"
#include "ops/team_compare.hpp"
#include "trireme/ops/loss/loss.hpp"

// The cross-entropy of a GPU, run by teams of the host's threads, against that of the CPU.
using namespace trireme;
using namespace trireme::ops;

namespace {

template <typename T>
struct Case {
  using A = Accumulate<T>;

  Case(std::int64_t rows, std::int64_t classes, bool smoothed, bool weighted)
      : logits(random_tensor<T>({rows, classes}, 1, 5)),
        targets({rows}),
        exponentials({2, rows}),
        options{.ignore_index = 2,
                .label_smoothing = smoothed ? 0.1 : 0,
                .class_weight = weighted ? random_tensor<A>({classes}, 2) : Tensor<A>()} {
    for (std::int64_t row = 0; row < rows; ++row) targets.data()[row] = static_cast<std::int32_t>(row * 3 % classes);
    for (const double weight : options.class_weight.span()) weight_sum += weight;
  }

  template <int Width>
  CrossEntropyRow<Width, T> rows() const {
    return {{.logits = logits.data(),
             .targets = targets.data(),
             .class_weight = options.class_weight.data(),
             .count = targets.numel(),
             .classes = logits.dim(1),
             .ignore_index = options.ignore_index,
             .label_smoothing = options.label_smoothing},
            options.class_weight.defined() ? &weight_sum : nullptr};
  }

  Tensor<T> logits;
  Tensor<std::int32_t> targets;
  Tensor<A> exponentials;
  CrossEntropyOptions<A, Cpu> options;
  double weight_sum = 0;
};

template <int Width, typename T>
Tensor<double> total(const CrossEntropyRow<Width, T>& rows, const Tensor<double>& losses, int size) {
  const Tensor<double> sums({3});
  device::run_host_team(size, [&](const device::HostTeam& team) {
    CrossEntropyTotal<Width, T>{rows, losses.data(), sums.data()}(team);
  });
  return sums;
}

template <int Width, typename T>
void check(Case<T> of, int size) {
  using A = Accumulate<T>;
  CAPTURE(Width, size, of.options.label_smoothing, of.options.class_weight.defined());
  const std::int64_t count = of.targets.numel();
  const auto rows = of.template rows<Width>();
  const auto expected = cross_entropy(of.logits, of.targets, of.exponentials, of.options);

  const Tensor<A> exponentials({2, count});
  const Tensor<double> losses({count});
  run_rows(size, count, CrossEntropyForward<Width, T>{rows, exponentials.data(), losses.data()});
  const Tensor<double> sums = total(rows, losses, size);
  require_close(exponentials, as_doubles(of.exponentials), tolerance<A>(1e-6));
  const auto require_sums = [&](const Tensor<double>& got) {
    CHECK(got.data()[0] == Approx(expected.sum).epsilon(tolerance<A>(1e-5)));
    CHECK(got.data()[1] == Approx(expected.target_weight));
    CHECK(got.data()[2] == -1);
  };
  require_sums(sums);

  Tensor<A> expected_losses({count});
  const Tensor<A> row_losses({count});
  cross_entropy_rows(of.logits, of.targets, of.exponentials, expected_losses, of.options);
  run_rows(size, count, CrossEntropyLosses<Width, T>{rows, exponentials.data(), row_losses.data()});
  require_close(row_losses, as_doubles(expected_losses), tolerance<A>(1e-5));

  Tensor<T> expected_dlogits(of.logits.shape());
  const Tensor<T> dlogits(of.logits.shape());
  const auto dlosses = random_tensor<A>({count}, 3);
  cross_entropy_rows_backward(of.logits, of.targets, of.exponentials, dlosses, expected_dlogits, of.options);
  run_rows(size, count, CrossEntropyGradient<Width, T>{rows, exponentials.data(), {{}, dlosses.data()}, dlogits.data()});
  require_close(dlogits, as_doubles(expected_dlogits), rounding<T>(2e-6));

  cross_entropy_backward(of.logits, of.targets, of.exponentials, A(0.25), expected_dlogits, of.options);
  run_rows(size, count, CrossEntropyInPlace<Width, T>{rows, A(0.25), of.logits.data(), losses.data()});
  require_close(of.logits, as_doubles(expected_dlogits), rounding<T>(2e-6));
  require_sums(total(rows, losses, size));
}

}  // namespace

TEMPLATE_TEST_CASE("cross-entropy by teams", "", float, double, bfloat16, float16) {
  for (const int size : {1, 3}) {
    for (const bool smoothed : {false, true}) {
      for (const bool weighted : {false, true}) {
        check<8>(Case<TestType>(7, 64, smoothed, weighted), size);
        check<1>(Case<TestType>(5, 11, smoothed, weighted), size);
      }
    }
  }
}

TEST_CASE("by teams, large logits have the bits of small ones") {
  const auto run = [](float offset) {
    Case<float> of(7, 64, true, true);
    for (std::int64_t i = 0; i < of.logits.numel(); ++i) of.logits.data()[i] = offset + static_cast<float>(i * i % 7 % 6);
    const auto rows = of.rows<4>();
    const Tensor<double> losses({7});
    const Tensor<float> dlogits(of.logits.shape());
    run_rows(3, 7, CrossEntropyForward<4, float>{rows, of.exponentials.data(), losses.data()});
    run_rows(3, 7, CrossEntropyGradient<4, float>{rows, of.exponentials.data(), {{0.5F}, nullptr}, dlogits.data()});
    return std::pair(as_doubles(losses), as_doubles(dlogits));
  };
  CHECK((run(1e7F) == run(0)));
}

TEST_CASE("by teams, a target that is no class is reported by its row and makes loss and gradient NaN") {
  for (const std::int32_t wrong : {-1, 11}) {
    Case<float> of(5, 11, false, true);
    of.targets.data()[3] = wrong;
    of.targets.data()[4] = wrong;
    const auto rows = of.rows<1>();
    const Tensor<double> losses({5});
    run_rows(3, 5, CrossEntropyInPlace<1, float>{rows, 1, of.logits.data(), losses.data()});
    CHECK(std::isnan(losses.data()[3]));
    CHECK(std::isnan(of.logits.data()[3 * 11]));
    CHECK(std::isfinite(of.logits.data()[1 * 11]));
    CHECK(total(rows, losses, 3).data()[2] == 3);
  }
}

TEST_CASE("by teams, a class of probability zero leaves the exponentials finite") {
  Case<float> of(1, 16, false, false);
  for (std::int64_t j = 0; j < 15; ++j) of.logits.data()[j] = -std::numeric_limits<float>::infinity();
  of.logits.data()[15] = 3;
  const Tensor<float> exponentials({2, 1});
  const Tensor<double> losses({1});
  run_rows(2, 1, CrossEntropyForward<4, float>{of.rows<4>(), exponentials.data(), losses.data()});
  CHECK(as_doubles(exponentials) == Doubles{3, 1});
}
