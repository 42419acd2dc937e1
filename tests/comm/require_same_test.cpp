#include "trireme/comm/base/require_same.hpp"

#include <mutex>

#include "catch.hpp"
#include "trireme/core/stopwatch.hpp"
#include "trireme/testing/ranks.hpp"

using namespace trireme;

TEST_CASE("a setting that differs on one rank stops all ranks with the same error") {
  std::mutex mutex;
  std::vector<std::string> errors;
  const Stopwatch stopwatch;
  try {
    testing::run_ranks(3, [&](const Group& world) {
      try {
        require_same(world, "setting", {{"steps", "10"}, {"learning_rate", world.rank() == 1 ? "0.1" : "0.2"}, {"seed", "1"}});
      } catch (const Error& error) {
        const std::lock_guard lock(mutex);
        CHECK(error.code() == ErrorCode::rank_mismatch);
        CHECK(error.fields().name == "learning_rate");
        CHECK(error.fields().rank == 1);
        errors.emplace_back(error.what());
        throw;
      }
    });
    FAIL("no error");
  } catch (const Error&) {
  }
  REQUIRE(errors.size() == 3);
  CHECK(errors[0] == errors[1]);
  CHECK(errors[0] == errors[2]);
  CHECK(errors[0].find("learning_rate = 0.2") != std::string::npos);
  CHECK(errors[0].find("learning_rate = 0.1") != std::string::npos);
  CHECK(stopwatch.seconds() < 2);
}

TEST_CASE("a missing setting is named; equal ones pass") {
  CHECK_THROWS_AS(testing::run_ranks(2,
                                     [](const Group& world) {
                                       std::vector<Setting> settings{{"a", "1"}};
                                       if (world.rank() == 1) settings.emplace_back("b", "2");
                                       require_same(world, "setting", settings);
                                     }),
                  Error);
  testing::run_ranks(2, [](const Group& world) { require_same(world, "setting", {{"a", "1"}, {"path", "caf\xe9"}}); });
}
