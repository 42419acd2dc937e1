#include <fmt/format.h>

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
void check_casts(const SafetensorsFile& file, const std::string& stored, const std::string& back,
                 std::vector<std::string>& problems) {
  const std::vector<float> values = read_floats(file, "x");
  const std::vector<T> expected = file.read_values<T>(stored);
  const std::vector<float> expected_back = read_floats(file, back);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const T got(values[i]);
    const bool same = got.bits() == expected.at(i).bits() && std::bit_cast<std::uint32_t>(static_cast<float>(got)) ==
                                                                 std::bit_cast<std::uint32_t>(expected_back.at(i));
    if (std::isnan(values[i]) ? std::isnan(static_cast<float>(got)) : same) continue;
    problems.push_back(
        fmt::format("{}, element {}: {} becomes {:#x}, not {:#x}", stored, i, values[i], got.bits(), expected[i].bits()));
  }
}

}  // namespace

TEST_CASE("float becomes float16 and bfloat16 as in PyTorch") {
  const auto check = [](const Fixture& fixture) {
    std::vector<std::string> problems;
    const SafetensorsFile file = fixture.tensors();
    check_casts<float16>(file, "to_f16", "f16_back", problems);
    check_casts<bfloat16>(file, "to_bf16", "bf16_back", problems);
    return problems;
  };
  CHECK(problems_of("casts", check) == "");
}
