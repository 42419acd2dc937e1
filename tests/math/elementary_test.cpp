#include "trireme/math/elementary.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "catch.hpp"

using namespace trireme;

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();
const float no_number = std::nanf("");

// The largest distance from the exact value, in units of its last place, over floats in [from, to].
double largest_ulp_error(float from, float to, int steps, const auto& ours, const auto& exact) {
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

}  // namespace

TEST_CASE("natural_log is within 2 ulp") {
  const auto ours = [](float x) { return math::natural_log(x); };
  const auto exact = [](double x) { return std::log(x); };
  CHECK(largest_ulp_error(0.5f, 2, 1000000, ours, exact) < 2);
  CHECK(largest_ulp_error(0.999f, 1.001f, 20000, ours, exact) < 2);
  CHECK(largest_ulp_error(2, 1e6f, 300000, ours, exact) < 2);
  CHECK(largest_ulp_error(1e30f, 3.4e38f, 300000, ours, exact) < 2);
  CHECK(largest_ulp_error(1e-45f, 1e-37f, 300000, ours, exact) < 2);
  CHECK(math::natural_log(1.0f) == 0);
  CHECK(math::natural_log(0.0f) == -infinity);
  CHECK(math::natural_log(-0.0f) == -infinity);
  CHECK(math::natural_log(infinity) == infinity);
  CHECK(std::isnan(math::natural_log(-1e-40f)));
  CHECK(std::isnan(math::natural_log(-infinity)));
  CHECK(std::isnan(math::natural_log(no_number)));
}

TEST_CASE("natural_log1p is within 4 ulp") {
  const auto ours = [](float x) { return math::natural_log1p(x); };
  const auto exact = [](double x) { return std::log1p(x); };
  CHECK(largest_ulp_error(-0.999f, 3, 1000000, ours, exact) < 4);
  CHECK(largest_ulp_error(-1e-3f, 1e-3f, 300000, ours, exact) < 4);
  CHECK(largest_ulp_error(1e-30f, 1e-6f, 100000, ours, exact) < 4);
  CHECK(largest_ulp_error(1, 1e30f, 100000, ours, exact) < 4);
  CHECK(math::natural_log1p(-1.0f) == -infinity);
  CHECK(math::natural_log1p(infinity) == infinity);
  CHECK(std::isnan(math::natural_log1p(-1.5f)));
  CHECK(std::isnan(math::natural_log1p(-infinity)));
  CHECK(std::isnan(math::natural_log1p(no_number)));
}

TEST_CASE("expm1 is within 6 ulp") {
  const auto ours = [](float x) { return math::expm1(x); };
  const auto exact = [](double x) { return std::expm1(x); };
  CHECK(largest_ulp_error(-20, 88, 1000000, ours, exact) < 6);
  CHECK(largest_ulp_error(-1, 1, 1000000, ours, exact) < 6);
  CHECK(largest_ulp_error(1e-30f, 1e-3f, 100000, ours, exact) < 6);
  CHECK(math::expm1(infinity) == infinity);
  CHECK(math::expm1(-infinity) == -1);
  CHECK(std::isnan(math::expm1(no_number)));
}

TEST_CASE("sine and cosine are within 1 ulp") {
  for (const float limit : {4.0f, 1000.0f, 1e6f, math::largest_angle}) {
    CAPTURE(limit);
    CHECK(largest_ulp_error(
              -limit, limit, 400000, [](float x) { return math::sine(x); }, [](double x) { return std::sin(x); }) < 1);
    CHECK(largest_ulp_error(
              -limit, limit, 400000, [](float x) { return math::cosine(x); }, [](double x) { return std::cos(x); }) < 1);
  }
  CHECK(math::sine(0.0f) == 0);
  CHECK(math::cosine(0.0f) == 1);
}
