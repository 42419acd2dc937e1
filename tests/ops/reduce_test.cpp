#include "trireme/ops/reduce/reduce.hpp"

#include <limits>

#include "ops/compare.hpp"
#include "ops/threads.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"

using namespace trireme;
using namespace trireme::ops;

TEMPLATE_TEST_CASE("sum_rows adds up the rows, overwriting and adding", "", float, double, bfloat16, float16) {
  using A = Accumulate<TestType>;
  for (const Shape& shape : {Shape{1, 1}, Shape{0, 3}, Shape{0, 600}, Shape{7, 33}, Shape{2, 4, 96}, Shape{513, 130},
                             Shape{5003, 3}, Shape{2100, 16}, Shape{131, 515}, Shape{9, 1030}}) {
    CAPTURE(shape.str());
    const auto x = random_tensor<TestType>(shape, 1);
    const std::int64_t width = shape.back();
    Doubles expected(static_cast<std::size_t>(width));
    for (std::int64_t i = 0; i < x.numel(); ++i)
      expected[static_cast<std::size_t>(i % width)] += static_cast<double>(x.data()[i]);
    const auto old = random_tensor<A>({width}, 2);
    auto columns = old.clone();
    sum_rows(x, columns, false);
    require_close(columns, expected, tolerance<A>(2e-5));
    columns = old.clone();
    sum_rows(x, columns, true);
    require_close(columns, add(as_doubles(old), expected), tolerance<A>(2e-5));
  }
}

TEMPLATE_TEST_CASE("sum_of_squares", "", float, double) {
  for (const std::int64_t count : {0, 1, 31, 4096, 10001}) {
    const auto x = random_tensor<TestType>({count}, 1);
    double squares = 0;
    for (const TestType element : x.span()) squares += static_cast<double>(element) * static_cast<double>(element);
    CHECK(sum_of_squares(x.data(), static_cast<std::size_t>(x.numel())) == Approx(squares).epsilon(1e-12).margin(1e-12));
  }
  auto x = Tensor<TestType>::zeros({100});
  x.data()[37] = std::numeric_limits<TestType>::infinity();
  CHECK(std::isinf(sum_of_squares(x.data(), static_cast<std::size_t>(x.numel()))));
  x.data()[99] = std::numeric_limits<TestType>::quiet_NaN();
  CHECK(std::isnan(sum_of_squares(x.data(), static_cast<std::size_t>(x.numel()))));
}

TEMPLATE_TEST_CASE("reductions give the same bits for any number of threads", "", float, double, bfloat16, float16) {
  for (const Shape& shape : {Shape{1000, 333}, Shape{50000, 3}, Shape{999, 1033}}) {
    CAPTURE(shape.str());
    const auto x = random_tensor<TestType>(shape, 1);
    const auto run = [&](int threads) {
      Tensor<Accumulate<TestType>> columns({shape.back()});
      double squares = 0;
      with_threads(threads, [&] {
        sum_rows(x, columns, false);
        squares = sum_of_squares(columns.data(), static_cast<std::size_t>(columns.numel()));
      });
      auto results = as_doubles(columns);
      results.push_back(squares);
      return results;
    };
    CHECK(run(1) == run(3));
  }
}
