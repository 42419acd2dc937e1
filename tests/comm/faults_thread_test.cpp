#include "catch.hpp"
#include "comm/expect.hpp"
#include "comm/faults.hpp"
#include "trireme/comm/launch/launch.hpp"

using namespace trireme;

TEST_CASE("a fault of any rank is named on all threads") {
  for (const auto& fault : test::faults()) {
    for (const int ranks : {2, 3, 4}) {
      for (int culprit = 0; culprit < ranks; ++culprit) {
        INFO(fault.name << " of rank " << culprit << " of " << ranks);
        CHECK(launch(BackendKind::thread, {.ranks = ranks, .deadline = test::fault_deadline}, [&](const Group& world) {
                fault.run(world, culprit);
                return 0;
              }) == fault.exit_code);
        CHECK(test::failed_checks.exchange(0) == 0);
      }
    }
  }
}
