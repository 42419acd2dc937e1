#include <bit>
#include <cmath>

#include "catch.hpp"
#include "fixtures.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"

using namespace trireme;
using namespace trireme::tests;

namespace {

template <typename T>
void check_casts(const SafetensorsFile& file, const std::string& stored, const std::string& back) {
  const std::vector<float> values = read_floats(file, "x");
  const std::vector<T> expected = file.read_values<T>(stored);
  const std::vector<float> expected_back = read_floats(file, back);
  REQUIRE(values.size() == expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    INFO(stored << " of " << values[i] << " at " << i);
    const T got(values[i]);
    if (std::isnan(values[i])) {
      CHECK(std::isnan(static_cast<float>(got)));
      continue;
    }
    CHECK(got.bits() == expected[i].bits());
    CHECK(std::bit_cast<std::uint32_t>(static_cast<float>(got)) == std::bit_cast<std::uint32_t>(expected_back[i]));
  }
}

}  // namespace

TEST_CASE("float becomes float16 and bfloat16 as in PyTorch") {
  const auto fixtures = fixtures_of_kind("casts");
  REQUIRE(!fixtures.empty());
  for (const Fixture& fixture : fixtures) {
    INFO(fixture.id());
    const SafetensorsFile file = fixture.tensors();
    check_casts<float16>(file, "to_f16", "f16_back");
    check_casts<bfloat16>(file, "to_bf16", "bf16_back");
  }
}
