#include "catch.hpp"
#include "comm/conformance.hpp"
#include "comm/expect.hpp"

using trireme::BackendKind;
using trireme::Group;

TEST_CASE("threads as ranks keep the contract of a group") {
  for (const auto& one : trireme::test::conformance_cases()) {
    for (int ranks = 1; ranks <= 4; ++ranks) {
      INFO(one.name << " with " << ranks << " ranks");
      CHECK(trireme::launch(BackendKind::thread, {.ranks = ranks}, [&](const Group& world) {
              one.check(world);
              return 0;
            }) == 0);
    }
  }
}

TEST_CASE("threads as ranks fail together") {
  for (const auto& one : trireme::test::failure_cases()) {
    for (int ranks = one.least_ranks; ranks <= 4; ++ranks) {
      INFO(one.name << " with " << ranks << " ranks");
      CHECK(trireme::launch(BackendKind::thread, {.ranks = ranks, .deadline = one.deadline}, one.run) == one.exit_code);
      CHECK(trireme::test::failed_checks.exchange(0) == 0);
    }
  }
}

TEST_CASE("launch gives the largest exit code") {
  CHECK(trireme::launch(BackendKind::thread, {.ranks = 3}, [](const Group& world) { return world.rank() * 5; }) == 10);
}

TEST_CASE("launch refuses options that make no sense") {
  const auto main = [](const Group&) { return 0; };
  CHECK(trireme::launch(BackendKind::thread, {.ranks = 0}, main) == 2);
  CHECK(trireme::launch(BackendKind::thread, {.threads_per_rank = -1}, main) == 2);
  CHECK(trireme::launch(BackendKind::thread, {.deadline = std::chrono::milliseconds(0)}, main) == 2);
  CHECK_THROWS_AS(trireme::parse_backend("telepathy"), trireme::Error);
}
