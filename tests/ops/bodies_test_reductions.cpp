#include "ops/compare.hpp"
#include "ops/reduce/reduce_plan.hpp"
#include "ops/reduce/reductions_body.hpp"
#include "trireme/ops/reduce/reductions.hpp"

// The reductions of a GPU, run by the host index after index, against those of the CPU.
using namespace trireme;
using namespace trireme::ops;

namespace {

constexpr std::int64_t outer = 3;
constexpr std::int64_t reduced = 37;
constexpr std::int64_t inner = 5;
const ReduceSizes sizes{outer, reduced, inner};

template <typename Body>
void run(std::int64_t count, const Body& body) {
  for (std::int64_t i = 0; i < count; ++i) body(i);
}

// In two stages.
template <typename T>
Tensor<Wide<T>> accumulate(Accumulation kind, const Tensor<T>& x, const Wide<T>* shift, std::int64_t parts) {
  const Tensor<Wide<T>> of_parts({outer, parts, inner}), values({outer, inner});
  run(of_parts.numel(), ReduceParts<T>{kind, sizes, parts, x.data(), shift, of_parts.data()});
  run(values.numel(),
      ReduceParts<Wide<T>>{accumulation_of_parts(kind), {outer, parts, inner}, 1, of_parts.data(), nullptr, values.data()});
  return values;
}

template <typename T>
Tensor<T> finish(Finish kind, const Tensor<double>& values, double divisor = 1, const double* shift = nullptr) {
  const Tensor<T> y(values.shape());
  run(y.numel(), FinishReduction<T, double>{kind, values.data(), shift, divisor, y.data()});
  return y;
}

template <typename T>
double close_in() {
  return std::is_same_v<T, bfloat16> ? 0x1p-7 : std::is_same_v<T, float16> ? 0x1p-10 : tolerance<T>(4e-6);
}

}  // namespace

TEMPLATE_TEST_CASE("reductions by the threads of a GPU", "", float, double, bfloat16, float16) {
  using T = TestType;
  const auto x = random_tensor<T>({outer, reduced, inner}, 1);
  for (const std::int64_t parts : {1, 4, 37}) {
    CAPTURE(parts);
    const auto plain = [&](Accumulation kind) { return accumulate(kind, x, nullptr, parts); };
    const double bound = close_in<T>();
    require_close(finish<T>(Finish::quotient, plain(Accumulation::sum)), as_doubles(sum(x, 1)), bound);
    require_close(finish<T>(Finish::quotient, plain(Accumulation::sum), reduced), as_doubles(mean(x, 1)), bound);
    require_close(finish<T>(Finish::quotient, plain(Accumulation::product)), as_doubles(prod(x, 1)), bound);
    require_close(finish<T>(Finish::quotient, plain(Accumulation::maximum)), as_doubles(max(x, 1)), 0);
    require_close(finish<T>(Finish::quotient, plain(Accumulation::minimum)), as_doubles(min(x, 1)), 0);
    require_close(finish<T>(Finish::quotient, plain(Accumulation::magnitudes)), as_doubles(norm(x, 1, 1)), bound);
    require_close(finish<T>(Finish::root, plain(Accumulation::squares)), as_doubles(norm(x, 2, 1)), bound);
    require_close(finish<T>(Finish::quotient, plain(Accumulation::largest_magnitude)),
                  as_doubles(norm(x, std::numeric_limits<double>::infinity(), 1)), 0);
    const auto means = finish<double>(Finish::quotient, plain(Accumulation::sum), reduced);
    const auto deviations = accumulate(Accumulation::deviations, x, means.data(), parts);
    require_close(finish<T>(Finish::quotient, deviations, reduced - 1), as_doubles(var(x, 1)), bound);
    const auto largest = finish<double>(Finish::finite, plain(Accumulation::maximum));
    const auto exponentials = accumulate(Accumulation::exponentials, x, largest.data(), parts);
    require_close(finish<T>(Finish::logarithm, exponentials, 1, largest.data()), as_doubles(logsumexp(x, 1)), bound);
  }
}

TEST_CASE("reductions of integers by the threads of a GPU") {
  Tensor<std::int32_t> x({outer, reduced, inner});
  for (std::int64_t i = 0; i < x.numel(); ++i) x.data()[i] = static_cast<std::int32_t>(i * 7919 % 1001 - 500);
  CHECK(as_doubles(accumulate<std::int32_t>(Accumulation::sum, x, nullptr, 4)) == as_doubles(sum(x, 1)));
  CHECK(as_doubles(accumulate<std::int32_t>(Accumulation::maximum, x, nullptr, 4)) == as_doubles(max(x, 1)));
  CHECK(as_doubles(accumulate<std::int32_t>(Accumulation::minimum, x, nullptr, 4)) == as_doubles(min(x, 1)));
}

TEMPLATE_TEST_CASE("gradients of reductions by the threads of a GPU", "", float, double, bfloat16, float16) {
  using T = TestType;
  auto x = random_tensor<T>({outer, reduced, inner}, 1);
  x.data()[7] = x.data()[7 + inner] = static_cast<T>(4.0F);  // two that share the maximum
  x.data()[3] = static_cast<T>(0.0F);
  for (const bool accumulates : {false, true}) {
    const auto start = random_tensor<T>(x.shape(), 3);
    const auto expected = [&](Reduction kind, const Tensor<T>& y, const Tensor<T>& dy) {
      Tensor<T> dx = start.clone();
      reduce_backward({.kind = kind, .dims = 1}, x, y, dy, dx, accumulates);
      return as_doubles(dx);
    };
    const auto check = [&](Reduction kind, Slope slope, Scaling scaling, double factor, const Tensor<double>& by,
                           const Tensor<double>& shift) {
      CAPTURE(operation_name(kind), accumulates);
      Tensor<T> y({outer, inner});
      reduce({.kind = kind, .dims = 1}, x, y);
      const auto dy = random_tensor<T>(y.shape(), 2);
      const Tensor<double> scale(y.shape());
      run(scale.numel(), GradientScale<T>{scaling, factor, dy.data(), by.data(), scale.data()});
      const Tensor<T> dx = start.clone();
      run(dx.numel(), ReductionGradient<T>{slope, sizes, x.data(), scale.data(), shift.data(), dx.data(), accumulates});
      require_close(dx, expected(kind, y, dy), close_in<T>());
    };
    const auto largest = accumulate(Accumulation::maximum, x, nullptr, 1);
    const auto counts = accumulate(Accumulation::equals, x, largest.data(), 4);
    const auto means = finish<double>(Finish::quotient, accumulate(Accumulation::sum, x, nullptr, 1), reduced);
    check(Reduction::mean, Slope::one, Scaling::times, 1.0 / reduced, {}, {});
    check(Reduction::max, Slope::equal, Scaling::quotient, 1, counts, largest);
    check(Reduction::norm1, Slope::sign, Scaling::times, 1, {}, {});
    check(Reduction::var, Slope::deviation, Scaling::times, 2.0 / (reduced - 1), {}, means);
  }
}

TEMPLATE_TEST_CASE("the gradient of a product by the threads of a GPU", "", float, double, bfloat16, float16) {
  using T = TestType;
  auto x = random_tensor<T>({outer, reduced, inner}, 1);
  x.data()[3] = static_cast<T>(0.0F);                        // one zero
  x.data()[4] = x.data()[4 + inner] = static_cast<T>(0.0F);  // two of them
  const auto dy = random_tensor<T>({outer, inner}, 2);
  const Tensor<T> y = prod(x, 1);
  const Tensor<double> scale(y.shape());
  run(scale.numel(), GradientScale<T>{Scaling::times, 1, dy.data(), nullptr, scale.data()});
  for (const bool accumulates : {false, true}) {
    Tensor<T> expected = random_tensor<T>(x.shape(), 3);
    const Tensor<T> start = expected.clone();
    reduce_backward({.kind = Reduction::prod, .dims = 1}, x, y, dy, expected, accumulates);
    for (const std::int64_t chunks : {1, 4}) {
      CAPTURE(chunks, accumulates);
      const Tensor<double> products({outer, chunks, inner}), before(x.shape());
      const Tensor<T> dx = start.clone();
      run(products.numel(), ChunkProduct<T>{sizes, chunks, x.data(), products.data()});
      run(products.numel(),
          ProductGradient<T>{sizes, chunks, x.data(), products.data(), scale.data(), before.data(), dx.data(), accumulates});
      require_close(dx, as_doubles(expected), close_in<T>());
    }
  }
}
