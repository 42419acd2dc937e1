#include "catch.hpp"
#include "ops/reference_fixture.hpp"

using namespace trireme;

TEST_CASE("operations agree with the reference results") {
  CHECK(tests::problems_of("op", [](const tests::Fixture& fixture) {
          ops::OpFixture run(fixture);
          ops::run_op(fixture.index.at("op"), run);
          return run.problems();
        }) == "");
}
