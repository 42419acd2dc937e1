#include "trireme/math/exponential.hpp"

#include <cmath>
#include <limits>

#include "catch.hpp"

using namespace trireme;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

// The largest distance of `ours` from `exact`, in units of the last place of the exact value, over floats in [from, to].
template <typename Ours, typename Exact>
double largest_ulp_error(float from, float to, int steps, Ours ours, Exact exact) {
  double largest = 0;
  for (int step = 0; step <= steps; ++step) {
    const float x = from + (to - from) * (static_cast<float>(step) / static_cast<float>(steps));
    const double expected = exact(static_cast<double>(x));
    const auto rounded = std::abs(static_cast<float>(expected));
    const double ulp = static_cast<double>(std::nextafter(rounded, infinity)) - static_cast<double>(rounded);
    largest = std::max(largest, std::abs(static_cast<double>(ours(x)) - expected) / ulp);
  }
  return largest;
}

const auto our_exp = [](float x) { return math::exp(x); };
const auto our_tanh = [](float x) { return math::tanh(x); };
const auto our_erf = [](float x) { return math::erf(x); };
const auto our_sigmoid = [](float x) { return math::sigmoid(x); };
double exact_exp(double x) { return std::exp(x); }
double exact_tanh(double x) { return std::tanh(x); }
double exact_erf(double x) { return std::erf(x); }
double exact_sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

TEST_CASE("exp is within 2 ulp where its result is normal") {
  CHECK(largest_ulp_error(-86.6f, 88.72f, 3000000, our_exp, exact_exp) < 2);
  CHECK(largest_ulp_error(-1, 1, 3000000, our_exp, exact_exp) < 2);
}

TEST_CASE("exp at its limits") {
  CHECK(math::exp(0.0f) == 1);
  CHECK(math::exp(-0.0f) == 1);
  CHECK(math::exp(89.0f) == infinity);
  CHECK(math::exp(1e30f) == infinity);
  CHECK(math::exp(infinity) == infinity);
  CHECK(math::exp(-88.0f) == 0);
  CHECK(math::exp(-infinity) == 0);
  CHECK(std::isnan(math::exp(std::numeric_limits<float>::quiet_NaN())));
}

TEST_CASE("the logistic function is within 4 ulp") {
  CHECK(largest_ulp_error(-86, 40, 3000000, our_sigmoid, exact_sigmoid) < 4);
  CHECK(math::sigmoid(-infinity) == 0);
  CHECK(math::sigmoid(infinity) == 1);
  CHECK(std::isnan(math::sigmoid(std::numeric_limits<float>::quiet_NaN())));
}

TEST_CASE("tanh is within 4 ulp") {
  CHECK(largest_ulp_error(-12, 12, 3000000, our_tanh, exact_tanh) < 4);
  CHECK(largest_ulp_error(0.6f, 0.65f, 1000000, our_tanh, exact_tanh) < 4);
  CHECK(largest_ulp_error(1e-30f, 1e-3f, 1000000, our_tanh, exact_tanh) < 4);
  CHECK(math::tanh(0.0f) == 0);
  CHECK(math::tanh(infinity) == 1);
  CHECK(math::tanh(-infinity) == -1);
  CHECK(std::isnan(math::tanh(std::numeric_limits<float>::quiet_NaN())));
}

TEST_CASE("erf is within 3 ulp") {
  CHECK(largest_ulp_error(-6, 6, 3000000, our_erf, exact_erf) < 3);
  CHECK(largest_ulp_error(0.9f, 0.95f, 1000000, our_erf, exact_erf) < 3);
  CHECK(largest_ulp_error(1e-30f, 1e-3f, 1000000, our_erf, exact_erf) < 3);
  CHECK(math::erf(infinity) == 1);
  CHECK(math::erf(-infinity) == -1);
  CHECK(std::isnan(math::erf(std::numeric_limits<float>::quiet_NaN())));
}
