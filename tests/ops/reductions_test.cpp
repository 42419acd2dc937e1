#include "trireme/ops/reduce/reductions.hpp"

#include <functional>
#include <limits>
#include <numeric>

#include "ops/compare.hpp"
#include "ops/threads.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"

using namespace trireme;
using namespace trireme::ops;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

// ((i * 7) % 11 - 5) / 2, exact in every type.
template <typename T>
Tensor<T> pattern(const Shape& shape) {
  Tensor<T> x(shape);
  for (std::int64_t i = 0; i < x.numel(); ++i) x.data()[i] = static_cast<T>(static_cast<float>(i * 7 % 11 - 5) / 2);
  return x;
}

template <typename T>
double close_in() {
  return std::is_same_v<T, bfloat16> ? 0x1p-8 : std::is_same_v<T, float16> ? 0x1p-11 : tolerance<T>(1e-6);
}

template <typename T>
void check(const Tensor<T>& got, const Shape& shape, const Doubles& expected) {
  CHECK(got.shape() == shape);
  require_close(got, expected, std::max(close_in<T>(), 1e-11));  // literals have 12 digits
}

// The results of x[outer, reduced, inner] one by one: f(elements of a result).
template <typename T>
Doubles one_by_one(const Tensor<T>& x, std::int64_t outer, std::int64_t reduced, std::int64_t inner,
                   const std::function<double(const Doubles&)>& f) {
  Doubles results;
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t j = 0; j < inner; ++j) {
      Doubles elements;
      for (std::int64_t r = 0; r < reduced; ++r) {
        elements.push_back(static_cast<double>(x.data()[(o * reduced + r) * inner + j]));
      }
      results.push_back(f(elements));
    }
  }
  return results;
}

double sum_of(const Doubles& x) { return std::accumulate(x.begin(), x.end(), 0.0); }

double variance_of(const Doubles& x) {
  const double mean = sum_of(x) / static_cast<double>(x.size());
  double total = 0;
  for (const double element : x) total += (element - mean) * (element - mean);
  return total / static_cast<double>(x.size() - 1);
}

}  // namespace

TEMPLATE_TEST_CASE("reductions have PyTorch's values", "", float, double, bfloat16, float16) {
  const auto x = pattern<TestType>({2, 3, 4});
  check(sum(x, 1), {2, 4}, {-4, 1, 0.5, 0, 1, 0.5, 0, -0.5});
  check(sum(x, {0, 2}), {3}, {3, -0.5, -4});
  check(sum(x), {}, {-1.5});
  check(mean(x, -1, true), {2, 3, 1}, {0, 0.25, -0.875, 0.75, -0.375, -0.125});
  check(mean(x, {0, 2}, true), {1, 3, 1}, {0.375, -0.0625, -0.5});
  check(prod(x, {2, 0}), {3}, {-7.8125, 0, -7.03125});
  check(prod(x, 2), {2, 3}, {6.25, 0, -3.75, -1.25, 0, 1.875});
  check(max(x, {0, -1}), {3}, {2.5, 2, 1.5});
  check(min(x, 1), {2, 4}, {-2.5, -1.5, -1, -2.5, -1.5, -1, -2.5, -2});
  check(logsumexp(x, {0, 2}), {3}, {3.474079644584, 2.944882516163, 2.57977935278});
  check(logsumexp(x, 1), {2, 4},
        {0.623872958369, 2.004596902342, 2.123872958369, 2.585097246364, 2.004596902342, 2.123872958369, 2.585097246364,
         1.504596902342});
  check(logsumexp(x), {}, {4.166211979569});
  check(var(x, {0, 2}), {3}, {3.125, 2.388392857143, 2.928571428571});
  check(var(x, 2, false, 0), {2, 3}, {3.625, 1.5625, 2.421875, 1.5625, 2.421875, 2.421875});
  check(stddev(x, {0, 2}, false, 1.5), {3}, {1.834498464263, 1.603781588813, 1.775907135479});
  check(stddev(x, {0, 1, 2}, true, 1.5), {1, 1, 1}, {1.662077013859});
  check(norm(x), {}, {7.88986691903});
  check(norm(x, 2, -1), {2, 3},
        {3.807886552932, 2.549509756796, 3.570714214271, 2.915475947423, 3.201562118716, 3.122498999199});
  check(norm(x, 1, {0, 2}), {3}, {12, 9.5, 12});
  check(norm(x, infinity, 1), {2, 4}, {2.5, 1.5, 2, 2.5, 1.5, 2, 2.5, 2});
}

TEST_CASE("integers and bool") {
  const auto x = Tensor<std::int32_t>::from({2, 3}, {1, -2, 3, 2147483647, 2147483647, 5});
  CHECK(as_doubles(sum(x, 1)) == Doubles{2, 4294967299.0});
  CHECK(as_doubles(max(x, 0)) == Doubles{2147483647, 2147483647, 5});
  CHECK(min(x).item() == -2);
  const auto large = Tensor<std::int64_t>::from({2, 1, 2}, {9007199254740993, 1, -9007199254740993, 2});
  CHECK(sum(large, 0).at(0, 0) == 0);
  CHECK(max(large, {0, 2}).item() == 9007199254740993);
  CHECK(min(large).item() == -9007199254740993);

  const auto mask = Tensor<bool>::from({2, 3, 2}, {true, true, false, true, false, false, true, true, true, true, false, true});
  CHECK(sum(mask).item() == 8);
  CHECK(as_doubles(any(mask, -1)) == Doubles{1, 1, 0, 1, 1, 1});
  CHECK(as_doubles(all(mask, {0, 2}, true)) == Doubles{1, 0, 0});
  CHECK(any(mask, {0, 2}).shape() == Shape{3});
  CHECK(any(mask).item());
  CHECK_FALSE(all(mask).item());
}

TEMPLATE_TEST_CASE("reductions of many sizes", "", float, double, bfloat16, float16) {
  using T = TestType;
  const std::vector<std::array<std::int64_t, 3>> sizes{{1, 1, 1},   {7, 1, 5},     {3, 9000, 1}, {700, 33, 1}, {1, 40000, 3},
                                                       {2, 300, 5}, {3, 500, 600}, {1, 7, 2100}, {5, 2, 40}};
  for (const auto& [outer, reduced, inner] : sizes) {
    CAPTURE(outer, reduced, inner);
    const auto x = random_tensor<T>({outer, reduced, inner}, 1);
    const auto expected = [&, outer = outer, reduced = reduced, inner = inner](const std::function<double(const Doubles&)>& f) {
      return one_by_one(x, outer, reduced, inner, f);
    };
    const double bound = 4 * close_in<T>();
    require_close(sum(x, 1), expected(sum_of), bound);
    require_close(max(x, 1), expected([](const Doubles& e) { return *std::max_element(e.begin(), e.end()); }), 0);
    require_close(min(x, 1), expected([](const Doubles& e) { return *std::min_element(e.begin(), e.end()); }), 0);
    if (reduced > 1) require_close(var(x, 1), expected(variance_of), bound);
    require_close(logsumexp(x, 1), expected([](const Doubles& e) {
                    double total = 0;
                    for (const double element : e) total += std::exp(element);
                    return std::log(total);
                  }),
                  bound);
  }
}

TEST_CASE("dims that are not neighbours, of six") {
  Tensor<double> x({2, 3, 2, 3, 2, 2});
  for (std::int64_t i = 0; i < x.numel(); ++i) x.data()[i] = std::sin(static_cast<double>(i));
  Doubles expected(18);
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    const std::int64_t b = i / 24 % 3, d = i / 4 % 3, f = i % 2;
    expected[static_cast<std::size_t>((b * 3 + d) * 2 + f)] += x.data()[i];
  }
  check(sum(x, {0, 2, 4}), {3, 3, 2}, expected);
  check(sum(x, {-6, -4, -2}, true), {1, 3, 1, 3, 1, 2}, expected);
  Doubles others(8, 1.0);
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    const std::int64_t a = i / 72, c = i / 12 % 2, e = i / 2 % 2;
    others[static_cast<std::size_t>((a * 2 + c) * 2 + e)] *= x.data()[i];
  }
  check(prod(x, {1, 3, 5}), {2, 2, 2}, others);
}

TEST_CASE("sums do not lose what is small") {
  Tensor<float> ones({1 << 18, 3});
  for (float& element : ones.span()) element = 0.1F;
  const double exact = static_cast<double>(0.1F) * (1 << 18);
  for (const float total : sum(ones, 0).span()) CHECK(total == static_cast<float>(exact));
  CHECK(sum(ones).item() == static_cast<float>(3 * exact));
  const auto large = Tensor<float>::full({4}, 1e30F);
  CHECK(norm(large).item() == 2e30F);
  CHECK(logsumexp(large).item() == 1e30F);
  CHECK(mean(Tensor<float>::full({4}, 3e38F)).item() == 3e38F);
  CHECK(var(Tensor<float>::from({3}, {1e8F, 1e8F, 1e8F})).item() == 0);
}

TEMPLATE_TEST_CASE("reductions have the same bits for any number of threads", "", float, double, bfloat16, float16) {
  for (const auto& [shape, dims] : std::vector<std::pair<Shape, Dims>>{
           {{100000}, {}}, {{40000, 3}, 0}, {{300, 333}, 0}, {{150, 700}, 1}, {{20, 50, 60}, {0, 2}}, {{3, 20000}, 1}}) {
    CAPTURE(shape.str());
    const auto x = random_tensor<TestType>(shape, 1);
    const auto run = [&, &dims = dims](int threads) {
      Doubles results;
      with_threads(threads, [&] {
        for (const auto& y : {sum(x, dims), logsumexp(x, dims), stddev(x, dims)}) {
          const auto values = as_doubles(y);
          results.insert(results.end(), values.begin(), values.end());
        }
        for (const Reduction kind : {Reduction::max, Reduction::prod}) {
          const ReductionOptions options{.kind = kind, .dims = dims};
          Tensor<TestType> y(reduced_shape("test", x.shape(), dims, false));
          Tensor<TestType> dx(x.shape());
          reduce(options, x, y);
          reduce_backward(options, x, y, y, dx, false);
          const auto values = as_doubles(dx);
          results.insert(results.end(), values.begin(), values.end());
        }
      });
      return results;
    };
    const auto alone = run(1);
    CHECK(run(2) == alone);
    CHECK(run(3) == alone);
  }
}

TEMPLATE_TEST_CASE("reductions of nothing", "", float, double, bfloat16, float16) {
  const auto x = Tensor<TestType>::zeros({2, 0, 3});
  check(sum(x, 1), {2, 3}, Doubles(6, 0.0));
  check(prod(x), {}, {1});
  check(norm(x, 1, 1), {2, 3}, Doubles(6, 0.0));
  check(norm(x, 2), {}, {0});
  for (const auto& nothing : {mean(x), var(x), stddev(x)}) CHECK(std::isnan(static_cast<double>(nothing.item())));
  CHECK(static_cast<double>(logsumexp(x, {0, 1, 2}).item()) == -infinity);
  CHECK_THROWS_WITH(max(x, 1), ContainsSubstring("max: x has shape [2, 0, 3], which has no element to choose from"));
  CHECK_THROWS_WITH(min(x), ContainsSubstring("min: x has shape [2, 0, 3]"));
  CHECK_THROWS_WITH(norm(x, infinity), ContainsSubstring("norm: x has shape [2, 0, 3]"));
  CHECK(max(x, 0).shape() == Shape{0, 3});
  CHECK(sum(x, 0, true).shape() == Shape{1, 0, 3});
  CHECK(sum(Tensor<std::int32_t>({0})).item() == 0);
  CHECK_FALSE(any(Tensor<bool>({0})).item());
  CHECK(all(Tensor<bool>({0})).item());
}

TEST_CASE("a scalar, one element and a dim that is named") {
  const auto x = Tensor<double>::full({}, -3);
  check(sum(x), {}, {-3});
  check(max(x, 0), {}, {-3});
  check(norm(x, 1, -1, true), {}, {3});
  check(var(x, {}, false, 0), {}, {0});
  CHECK(std::isnan(var(x).item()));
  check(sum(Tensor<double>::full({1, 1, 1}, 2), 1), {1, 1}, {2});
  CHECK(Dims{0, 2} == Dims{0, 2});
}

TEMPLATE_TEST_CASE("NaN and infinity in reductions", "", float, double, bfloat16, float16) {
  using T = TestType;
  const auto of = [](double a, double b, double c) {
    const auto as = [](double v) { return static_cast<T>(static_cast<Accumulate<T>>(v)); };
    return Tensor<T>::from({3}, {as(a), as(b), as(c)});
  };
  const auto is_nan = [](const Tensor<T>& y) { return std::isnan(static_cast<double>(y.item())); };
  for (const auto& x : {of(not_a_number, 1, 2), of(1, not_a_number, 2), of(1, 2, not_a_number)}) {
    CHECK(is_nan(max(x)));
    CHECK(is_nan(min(x)));
    CHECK(is_nan(sum(x)));
    CHECK(is_nan(logsumexp(x)));
    CHECK(is_nan(norm(x, infinity)));
    CHECK(is_nan(max(x.reshape({1, 3, 1}), 1).reshape({})));
  }
  Tensor<T> columns({200, 40});
  for (T& element : columns.span()) element = T(1.0F);
  columns.at(150, 7) = static_cast<T>(std::numeric_limits<float>::quiet_NaN());
  const auto largest = max(columns, 0);
  for (std::int64_t j = 0; j < 40; ++j) CHECK(std::isnan(static_cast<double>(largest.at(j))) == (j == 7));
  CHECK(static_cast<double>(logsumexp(of(infinity, 1, 2)).item()) == infinity);
  CHECK(static_cast<double>(logsumexp(of(infinity, -infinity, 2)).item()) == infinity);
  CHECK(static_cast<double>(logsumexp(of(-infinity, -infinity, -infinity)).item()) == -infinity);
  CHECK(static_cast<double>(max(of(-infinity, -infinity, -infinity)).item()) == -infinity);
  CHECK(static_cast<double>(logsumexp(of(-infinity, 1, -infinity)).item()) == 1);
}

TEST_CASE("reductions refuse what they can't do") {
  const auto x = Tensor<float>::zeros({2, 3});
  CHECK_THROWS_WITH(sum(x, 2), ContainsSubstring("sum: a tensor of shape [2, 3] has no dim 2"));
  CHECK_THROWS_WITH(mean(x, -3), ContainsSubstring("mean: a tensor of shape [2, 3] has no dim -3"));
  CHECK_THROWS_WITH(max(x, {0, -2}), ContainsSubstring("max: dim -2 of the shape [2, 3] is named twice"));
  CHECK_THROWS_WITH(norm(x, 3), ContainsSubstring("norm: p is 1, 2 or infinity, not 3"));
  CHECK_THROWS_WITH(prod(Tensor<float>()), ContainsSubstring("prod: x is undefined"));
  CHECK_THROWS_WITH(any(Tensor<bool>()), ContainsSubstring("any: x is undefined"));
  CHECK_THROWS_WITH((Dims{0, 1, 2, 3, 4, 5, 6}), ContainsSubstring("at most 6 dims, got 7"));
  Tensor<float> y({4});
  CHECK_THROWS_WITH(reduce({.kind = Reduction::sum, .dims = 0}, x, y), ContainsSubstring("needs 3 elements"));
}

TEMPLATE_TEST_CASE("gradients of reductions are added where told, through copies too", "", float, double, bfloat16, float16) {
  using T = TestType;
  const auto x = pattern<T>({2, 3, 4});
  for (const Dims& dims : {Dims(1), Dims{0, 2}, Dims(-1), Dims()}) {
    for (const Reduction kind : {Reduction::sum, Reduction::mean, Reduction::prod, Reduction::max, Reduction::min,
                                 Reduction::var, Reduction::stddev, Reduction::norm1, Reduction::norm2, Reduction::norm_inf}) {
      CAPTURE(operation_name(kind));
      const ReductionOptions options{.kind = kind, .dims = dims};
      Tensor<T> y(reduced_shape("test", x.shape(), dims, false));
      reduce(options, x, y);
      const auto dy = random_tensor<T>(y.shape(), 2);
      Tensor<T> alone(x.shape());
      reduce_backward(options, x, y, dy, alone, false);
      Tensor<T> added = x.clone();
      reduce_backward(options, x, y, dy, added, true);
      require_close(added, add(as_doubles(x), as_doubles(alone)), 8 * close_in<T>());
    }
    Tensor<T> y(reduced_shape("test", x.shape(), dims, false)), alone(x.shape()), added = x.clone();
    Tensor<double> exponentials({2, y.numel()});
    logsumexp(dims, x, y, exponentials);
    const auto dy = random_tensor<T>(y.shape(), 2);
    logsumexp_backward(dims, x, exponentials, dy, alone, false);
    logsumexp_backward(dims, x, exponentials, dy, added, true);
    require_close(added, add(as_doubles(x), as_doubles(alone)), 8 * close_in<T>());
  }
}
