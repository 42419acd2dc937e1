#include "parallel/replicas/exact_sum.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "catch.hpp"

using trireme::parallel::ExactSum;

namespace {

double sum_of(const std::vector<double>& values) {
  ExactSum sum;
  for (const double value : values) sum.add(value);
  return sum.value();
}

// In parts, whose digits are added up as ranks do.
double sum_in_parts(const std::vector<double>& values, std::size_t parts) {
  std::vector<ExactSum> sums(parts);
  for (std::size_t index = 0; index < values.size(); ++index) sums[index % parts].add(values[index]);
  std::array<double, ExactSum::num_doubles> all{};
  for (ExactSum& sum : sums) {
    std::array<double, ExactSum::num_doubles> terms{};
    sum.write(terms);
    for (std::size_t index = 0; index < terms.size(); ++index) all[index] += terms[index];
  }
  ExactSum total;
  total.read(all);
  return total.value();
}

bool same(double a, double b) { return std::isnan(a) ? std::isnan(b) : a == b; }

}  // namespace

TEST_CASE("an exact sum depends neither on the order nor on who adds what") {
  std::mt19937_64 random(7);
  std::uniform_int_distribution<int> exponents(-300, 300);
  std::uniform_real_distribution<double> fractions(0.5, 1);
  std::vector<double> values(3000);
  for (double& value : values) value = std::ldexp(fractions(random), exponents(random));
  const double wanted = sum_of(values);
  for (int round = 0; round < 5; ++round) {
    std::ranges::shuffle(values, random);
    CHECK(sum_of(values) == wanted);
    for (const std::size_t parts : {1, 2, 3, 64}) CHECK(sum_in_parts(values, parts) == wanted);
  }
}

TEST_CASE("an exact sum loses nothing") {
  const double tiny = std::numeric_limits<double>::denorm_min();
  const double huge = std::numeric_limits<double>::max();
  CHECK(sum_of({}) == 0);
  CHECK(sum_of({0.0}) == 0);
  CHECK(sum_of({tiny}) == tiny);
  CHECK(sum_of({huge}) == huge);
  CHECK(sum_of({tiny, tiny, tiny}) == 3 * tiny);
  CHECK(sum_of({std::numeric_limits<double>::min(), tiny}) == std::numeric_limits<double>::min() + tiny);
  CHECK(sum_of({huge, huge}) == std::numeric_limits<double>::infinity());
  // Digits that additions of doubles would lose.
  std::vector<double> many(1 << 10, std::ldexp(1, -53));
  many.push_back(1);
  CHECK(sum_of(many) == 1 + std::ldexp(1, -43));
  for (int exponent = -1074; exponent < 1024; ++exponent) CHECK(sum_of({std::ldexp(1, exponent)}) == std::ldexp(1, exponent));
}

TEST_CASE("what is inf or nan makes an exact sum so") {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const std::size_t parts : {1, 2}) {
    CHECK(same(sum_in_parts({1, inf, 2}, parts), inf));
    CHECK(same(sum_in_parts({1, nan, 2}, parts), nan));
    CHECK(same(sum_in_parts({inf, nan, -nan}, parts), nan));
  }
}
