#include <fmt/format.h>
#include <fmt/ranges.h>

#include "catch.hpp"
#include "ops/reference_fixture.hpp"

using namespace trireme;

TEST_CASE("operations agree with the reference results") {
  int ran = 0;
  std::vector<std::string> missing;
  for (const tests::Fixture& fixture : tests::fixtures_of_kind("op")) {
    INFO(fixture.id());
    ops::OpFixture run(fixture);
    if (!ops::run_op(fixture.index.at("op"), run)) {
      missing.push_back(fixture.id());
      continue;
    }
    ++ran;
    for (const std::string& text : run.mismatches()) {
      UNSCOPED_INFO(text);
      CHECK(text.empty());
    }
  }
  fmt::print("{} fixtures ran; not in the library yet, or not with these options: {}\n", ran, fmt::join(missing, ", "));
  CHECK(ran > 0);
}
