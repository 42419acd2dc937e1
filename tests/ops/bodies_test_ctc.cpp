#include <limits>

#include "ops/loss/ctc_samples.hpp"
#include "ops/team_compare.hpp"

// The CTC loss of a GPU, run by teams of the host's threads, against that of the CPU; and inputs that only a GPU accepts.
using namespace trireme;
using namespace trireme::ops;

namespace {

template <typename T>
struct Case {
  CtcInput<T, Cpu> input;
  Tensor<T> losses;
  Tensor<double> alpha;
  Tensor<T> dlosses;

  Case()
      : input{.log_probabilities = random_tensor<T>({4, 9, 5}, 1),
              .targets = Tensor<std::int32_t>::from({4, 4}, {1, 2, 2, 1, 4, 0, 0, 0, 2, 2, 2, 2, 3, 1, 4, 1}),
              .input_lengths = Tensor<std::int32_t>::from({4}, {9, 3, 4, 0}),
              .target_lengths = Tensor<std::int32_t>::from({4}, {4, 1, 4, 0})},
        losses({4}),
        alpha({4, 9, 9}),
        dlosses(random_tensor<T>({4}, 2)) {}

  CtcSamples<T> samples() const { return ctc_samples_of("test", input); }
};

template <typename T>
Tensor<T> gradient_by_teams(const Case<T>& of, const Tensor<double>& alpha, int size) {
  const Tensor<double> beta({4, 2, 9});
  const Tensor<std::int32_t> next({4, 4});
  const Tensor<T> gradient(of.input.log_probabilities.shape());
  run_rows(size, 4, CtcBackward<T>{of.samples(), alpha.data(), of.dlosses.data(), beta.data(), next.data(), gradient.data()});
  return gradient;
}

}  // namespace

TEMPLATE_TEST_CASE("CTC by teams", "", float, double) {
  using T = TestType;
  for (const bool zero_infinity : {true, false}) {
    Case<T> of;
    of.input.options.zero_infinity = zero_infinity;
    ctc_loss(of.input, of.losses, of.alpha);
    Tensor<T> expected(of.input.log_probabilities.shape());
    ctc_loss_backward(of.input, of.alpha, of.dlosses, expected);
    CHECK((zero_infinity ? of.losses.at(2) == 0 : std::isinf(of.losses.at(2))));
    if (!zero_infinity) expected = expected.narrow(0, 2);
    for (const int size : {1, 3, 8}) {
      CAPTURE(size);
      const Tensor<T> losses({4});
      const Tensor<double> alpha({4, 9, 9});
      run_rows(size, 4, CtcForward<T>{of.samples(), losses.data(), alpha.data()});
      if (zero_infinity) require_close(losses, as_doubles(of.losses), tolerance<T>(1e-6));
      const Tensor<T> gradient = gradient_by_teams(of, alpha, size);
      require_close(gradient.narrow(0, expected.dim(0)), as_doubles(expected), tolerance<T>(1e-6));
    }
  }
}

TEST_CASE("CTC of many rows and large logarithms is as exact in float as in double") {
  constexpr std::int64_t time = 3000, classes = 5, labels = 40;
  for (const float offset : {0.0F, -1024.0F}) {
    const auto x = random_tensor<float>({1, time, classes}, 1);
    Tensor<double> wide(x.shape());
    for (std::int64_t i = 0; i < x.numel(); ++i) wide.data()[i] = static_cast<double>(x.data()[i] += offset);
    Tensor<std::int32_t> targets({1, labels});
    for (std::int64_t i = 0; i < labels; ++i) targets.data()[i] = static_cast<std::int32_t>(1 + i * i % 4);
    const auto gradient_of = [&]<typename T>(const Tensor<T>& log_probabilities) {
      const CtcInput<T, Cpu> input{.log_probabilities = log_probabilities,
                                   .targets = targets,
                                   .input_lengths = Tensor<std::int32_t>::full({1}, time),
                                   .target_lengths = Tensor<std::int32_t>::full({1}, labels)};
      Tensor<T> losses({1}), gradient(x.shape());
      Tensor<double> alpha({1, time, 2 * labels + 1});
      ctc_loss(input, losses, alpha);
      ctc_loss_backward(input, alpha, Tensor<T>::full({1}, T(labels)), gradient);
      return gradient;
    };
    require_close(gradient_of(x), as_doubles(gradient_of(wide)), 3e-5);
  }
}

TEST_CASE("CTC of a logarithm that is nan is nan") {
  Case<double> of;
  of.input.log_probabilities.at(1, 0, 0) = std::numeric_limits<double>::quiet_NaN();  // of the blank, in the first row
  ctc_loss(of.input, of.losses, of.alpha);
  CHECK(std::isnan(of.losses.at(1)));
  CHECK(std::isfinite(of.losses.at(0)));
}

TEST_CASE("teams read nothing by a wrong length or label, whose loss and gradient are NaN") {
  const auto check = [](const auto& change) {
    Case<double> of;
    change(of.input);
    run_rows(3, 4, CtcForward<double>{of.samples(), of.losses.data(), of.alpha.data()});
    CHECK(std::isnan(of.losses.at(1)));
    CHECK(std::isfinite(of.losses.at(0)));
    const auto gradient = gradient_by_teams(of, of.alpha, 3);
    CHECK(std::isnan(gradient.at(1, 8, 4)));
    CHECK(std::isfinite(gradient.at(0, 8, 4)));
    CHECK_THROWS_AS(ctc_loss(of.input, of.losses, of.alpha), Error);
  };
  check([](auto& input) { input.input_lengths.at(1) = 10; });
  check([](auto& input) { input.input_lengths.at(1) = -1; });
  check([](auto& input) { input.target_lengths.at(1) = 5; });
  check([](auto& input) { input.target_lengths.at(1) = -2; });
  check([](auto& input) { input.targets.at(1, 0) = 5; });
  check([](auto& input) { input.targets.at(1, 0) = -100; });
  check([](auto& input) { input.targets.at(1, 0) = 0; });
}
