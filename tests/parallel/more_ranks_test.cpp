#include "catch.hpp"
#include "compression_runs.hpp"
#include "problems_on_threads.hpp"
#include "sharded_runs.hpp"

// The checks of parallel_test, which has two ranks, on other numbers of ranks.
using namespace trireme;

TEST_CASE("sharded steps train the model that replicated steps train") {
  for (const int ranks : {1, 3, 4}) {
    CAPTURE(ranks);
    CHECK(tests::problems_on_threads(ranks, tests::sharded_step_problems) == std::vector<std::string>());
  }
}

TEST_CASE("every compression") {
  for (const int ranks : {1, 4}) {
    CAPTURE(ranks);
    CHECK(tests::problems_on_threads(ranks, tests::compression_problems) == std::vector<std::string>());
  }
}
