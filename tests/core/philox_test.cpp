#include "trireme/core/philox.hpp"

#include <cmath>
#include <set>

#include "catch.hpp"

using namespace trireme;

namespace {
using Words = std::array<std::uint32_t, 4>;
}

TEST_CASE("philox gives the published known answers") {
  CHECK(philox(Words{0, 0, 0, 0}, {0, 0}) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox(Words{~0U, ~0U, ~0U, ~0U}, {~0U, ~0U}) == Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox(Words{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("seed, stream and index each make other numbers, in all their bits") {
  std::set<Words> seen{philox(0, 0, 0)};
  for (int bit = 0; bit < 64; ++bit) {
    const std::uint64_t value = std::uint64_t{1} << bit;
    seen.insert(philox(value, 0, 0));
    seen.insert(philox(0, value, 0));
    seen.insert(philox(0, 0, value));
  }
  CHECK(seen.size() == 1 + 3 * 64);
}

TEST_CASE("uniform numbers lie in (0, 1) and normal ones have the moments of a normal distribution") {
  const int count = 200'000;
  double sum = 0;
  double squares = 0;
  double normal_sum = 0;
  double normal_squares = 0;
  double normal_fourth = 0;
  for (std::uint64_t index = 0; index < count; ++index) {
    const double u = philox_uniform(7, hash_name("u"), index);
    REQUIRE((u > 0 && u < 1));
    sum += u;
    squares += u * u;
    const double x = philox_normal(7, hash_name("n"), index);
    normal_sum += x;
    normal_squares += x * x;
    normal_fourth += x * x * x * x;
  }
  // Five standard deviations of each mean.
  const double root = std::sqrt(count);
  CHECK(std::abs(sum / count - 0.5) < 5 * std::sqrt(1.0 / 12) / root);
  CHECK(std::abs(squares / count - 1.0 / 3) < 5 * std::sqrt(4.0 / 45) / root);
  CHECK(std::abs(normal_sum / count) < 5 / root);
  CHECK(std::abs(normal_squares / count - 1) < 5 * std::sqrt(2.0) / root);
  CHECK(std::abs(normal_fourth / count - 3) < 5 * std::sqrt(96.0) / root);
}

TEST_CASE("names hash to the published values of FNV-1a") {
  CHECK(hash_name("") == 0xcbf29ce484222325);
  CHECK(hash_name("a") == 0xaf63dc4c8601ec8c);
  CHECK(hash_name("foobar") == 0x85944171f73967e8);
}
