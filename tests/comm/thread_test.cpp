#include <thread>

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
  for (const auto& [returned, code] : {std::pair(-1, 255), std::pair(256, 1), std::pair(257, 1)}) {
    const int of_last = returned;
    CHECK(trireme::launch(BackendKind::thread, {.ranks = 2},
                          [&](const Group& world) { return world.rank() == 1 ? of_last : 0; }) == code);
  }
}

TEST_CASE("launch refuses options that make no sense") {
  const auto main = [](const Group&) { return 0; };
  CHECK(trireme::launch(BackendKind::thread, {.ranks = 0}, main) == 2);
  CHECK(trireme::launch(BackendKind::thread, {.ranks = 1'000'000'000}, main) == 2);
  CHECK(trireme::launch(BackendKind::thread, {.threads_per_rank = -1}, main) == 2);
  CHECK(trireme::launch(BackendKind::thread, {.deadline = std::chrono::milliseconds(0)}, main) == 2);
  CHECK_THROWS_AS(trireme::parse_backend("telepathy"), trireme::Error);
}

// The first member of a group that is being made may leave, since a rank elsewhere has failed, while others take what it
// offers.
TEST_CASE("a rank that fails while others make groups ends them all, whatever they have got") {
  for (int round = 0; round < 100; ++round) {
    const int code = trireme::launch(BackendKind::thread, {.ranks = 4}, [&](const Group& world) {
      const Group others = world.split(world.rank() == 3 ? 1 : 0, world.rank(), "others");
      if (world.rank() == 3) {
        for (int turn = 0; turn < 10 * round; ++turn) std::this_thread::yield();
        throw trireme::Error({.code = trireme::ErrorCode::invalid_argument, .message = "a rank that fails"});
      }
      while (others.split(0, others.rank(), "all").size() == 3) {
      }
      return 0;
    });
    REQUIRE(code == 2);
  }
}
