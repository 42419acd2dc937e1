#include "catch.hpp"
#include "silent_corruption_runs.hpp"
#include "trireme/testing/ranks.hpp"

using namespace trireme;

TEST_CASE("a bit that one replica turns over is found, with its rank and parameter") {
  for (const int ranks : {2, 3, 4}) testing::run_ranks(ranks, tests::expect_differing_replicas_found);
}

TEST_CASE("a loss or gradient that is not finite stops all ranks, or makes all leave out the step") {
  for (const int ranks : {2, 3, 4}) testing::run_ranks(ranks, tests::expect_steps_that_are_not_finite_left_out);
}
