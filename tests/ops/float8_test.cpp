#include "trireme/ops/matmul/float8.hpp"

#include <cmath>
#include <limits>

#include "ops/compare.hpp"

using namespace trireme;
using namespace trireme::ops;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

Tensor<float> floats(const std::vector<float>& values) {
  return Tensor<float>::from({static_cast<std::int64_t>(values.size())}, values);
}

template <typename F>
std::vector<float> scale_of(const std::vector<float>& amaxes) {
  Tensor<float> scale({2});
  float8_scale<F>(floats(amaxes), scale);
  return {scale.data(), scale.data() + 2};
}

template <typename F, typename T>
Quantized<F> quantized_by_current_scaling(const Tensor<T>& x) {
  Tensor<float> largest({1});
  Quantized<F> y{.codes = Tensor<F>({x.shape().rows(), x.shape().back()}),
                 .transposed = Tensor<F>({x.shape().back(), x.shape().rows()}),
                 .scale = Tensor<float>({2}),
                 .amax = Tensor<float>({1})};
  amax(x, largest);
  float8_scale<F>(largest, y.scale);
  quantize(x, y);
  REQUIRE(y.amax.item() == largest.item());
  return y;
}

template <typename F>
Doubles values_of(const Tensor<F>& codes, const Tensor<float>& scale) {
  Doubles values = as_doubles(codes);
  for (double& value : values) value *= static_cast<double>(scale.data()[0]);
  return values;
}

}  // namespace

TEMPLATE_TEST_CASE("amax is the largest finite magnitude", "", float, bfloat16) {
  Tensor<TestType> x({2, 3});
  const std::vector<float> values{1, -7, infinity, not_a_number, -infinity, 3};
  for (std::size_t i = 0; i < values.size(); ++i) x.span()[i] = TestType(values[i]);
  Tensor<float> largest({1});
  amax(x, largest);
  CHECK(largest.item() == 7);
  amax(Tensor<TestType>::full({4}, TestType(not_a_number)), largest);
  CHECK(largest.item() == 0);
}

TEST_CASE("a scale is the largest power of two that keeps the largest value representable") {
  CHECK(scale_of<float8_e4m3>({448}) == std::vector<float>{1, 1});
  CHECK(scale_of<float8_e4m3>({449}) == std::vector<float>{2, 0.5F});
  CHECK(scale_of<float8_e4m3>({1, 3, 2}) == std::vector<float>{1.0F / 128, 128});
  CHECK(scale_of<float8_e5m2>({0.001F, 0}) == std::vector<float>{0x1p-25F, 0x1p25F});
  CHECK(scale_of<float8_e4m3>({0}) == std::vector<float>{1, 1});
  CHECK(scale_of<float8_e4m3>({1e-42F}) == std::vector<float>{0x1p-126F, 0x1p126F});
  CHECK(scale_of<float8_e5m2>({std::numeric_limits<float>::max()})[1] == 0x1p-113F);
}

TEST_CASE("a delayed scale is that of the history, or of the tensor where there is none") {
  Tensor<float> scale({2});
  delayed_float8_scale<float8_e4m3>(floats({448, -500}), floats({0, 0}), scale);
  CHECK(scale.data()[1] == 0.5F);
  delayed_float8_scale<float8_e4m3>(floats({448, -500}), floats({0, 3}), scale);
  CHECK(scale.data()[1] == 128);
  CHECK(scale.data()[0] == 1.0F / 128);
  CHECK_THROWS_WITH(delayed_float8_scale<float8_e4m3>(floats({1}), Tensor<float>({0}), scale),
                    ContainsSubstring("the history is empty"));
}

TEST_CASE("a history keeps the newest values, the newest first") {
  Tensor<float> history = Tensor<float>::zeros({3});
  for (const float value : {1.0F, 2.0F, 3.0F, 4.0F}) push_amax(floats({value}), history);
  CHECK(as_doubles(history) == Doubles{4, 3, 2});
}

TEMPLATE_TEST_CASE("quantised values are within half a unit of the fraction, transposed or not", "", float8_e4m3, float8_e5m2) {
  using F = TestType;
  const auto x = random_tensor<float>({2, 8, 48}, 1, 5);
  const auto y = quantized_by_current_scaling<F>(x);
  const Doubles values = values_of(y.codes, y.scale);
  const double unit = std::is_same_v<F, float8_e4m3> ? 0x1p-4 : 0x1p-3;
  const double smallest = static_cast<double>(y.scale.data()[0]) * (std::is_same_v<F, float8_e4m3> ? 0x1p-10 : 0x1p-17);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto expected = static_cast<double>(x.span()[i]);
    REQUIRE(std::abs(values[i] - expected) <= std::max(unit * std::abs(expected), smallest));
  }
  for (std::int64_t row = 0; row < 16; ++row) {
    for (std::int64_t column = 0; column < 48; ++column) {
      REQUIRE(y.transposed.data()[column * 16 + row].bits() == y.codes.data()[row * 48 + column].bits());
    }
  }
}

TEST_CASE("what is not finite becomes NaN; what is beyond the scale of an older step the largest value") {
  Tensor<float> x = Tensor<float>::zeros({16, 16});
  x.data()[0] = infinity;
  x.data()[1] = not_a_number;
  x.data()[2] = -1000;
  const Quantized<float8_e4m3> y{.codes = Tensor<float8_e4m3>({16, 16}), .transposed = {}, .scale = floats({1, 1})};
  quantize(x, y);
  CHECK(std::isnan(static_cast<float>(y.codes.data()[0])));
  CHECK(std::isnan(static_cast<float>(y.codes.data()[1])));
  CHECK(static_cast<float>(y.codes.data()[2]) == -448);
  CHECK(static_cast<float>(y.codes.data()[3]) == 0);
}

TEMPLATE_TEST_CASE("8-bit products are those of what the codes stand for", "", float8_e4m3, float8_e5m2) {
  using F = TestType;
  constexpr std::int64_t m = 32, n = 16, k = 48;
  const auto a = quantized_by_current_scaling<F>(random_tensor<float>({m, k}, 1));
  const auto b = quantized_by_current_scaling<float8_e4m3>(random_tensor<float>({n, k}, 2, 0.01));
  const auto bias = random_tensor<float>({n}, 3);
  const Doubles of_a = values_of(a.codes, a.scale), of_b = values_of(b.codes, b.scale);
  Doubles product(m * n), with_bias(m * n);
  for (std::size_t row = 0; row < m; ++row) {
    for (std::size_t column = 0; column < n; ++column) {
      for (std::size_t i = 0; i < k; ++i) product[row * n + column] += of_a[row * k + i] * of_b[column * k + i];
      with_bias[row * n + column] = product[row * n + column] + static_cast<double>(bias.span()[column]);
    }
  }
  Tensor<bfloat16> y({m, n});
  float8_matmul<F>({a.codes, a.scale}, {b.codes, b.scale}, bias, y);
  require_close(y, with_bias, 0x1p-8);
  auto sum = random_tensor<float>({m, n}, 4);
  const Doubles expected = ops::add(as_doubles(sum), product);
  float8_matmul<F>({a.codes, a.scale}, {b.codes, b.scale}, {}, sum, true);
  require_close(sum, expected, 1e-5);
}

TEST_CASE("8-bit products say what they need") {
  Tensor<float> x({16, 24}), c({16, 16});
  const Quantized<float8_e4m3> y{.codes = Tensor<float8_e4m3>({16, 24}), .transposed = {}, .scale = floats({1, 1})};
  CHECK_THROWS_WITH(quantize(x, y), ContainsSubstring("[16, 24]") && ContainsSubstring("multiples of 16"));
  const Float8Operand<float8_e4m3> a{Tensor<float8_e4m3>({16, 16}), floats({1, 1})};
  CHECK_THROWS_WITH(float8_matmul(a, a, floats({1}), c), ContainsSubstring("a bias needs a result of bfloat16"));
  const Float8Operand<float8_e4m3> narrow{Tensor<float8_e4m3>({16, 8}), floats({1, 1})};
  CHECK_THROWS_WITH(float8_matmul(a, narrow, {}, c), ContainsSubstring("is not a"));
  CHECK_THROWS_WITH(float8_matmul(narrow, narrow, {}, c), ContainsSubstring("multiples of 16"));
}
