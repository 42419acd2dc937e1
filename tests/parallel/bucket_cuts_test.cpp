#include "trireme/parallel/reduction/bucket_cuts.hpp"

#include <numeric>
#include <random>

#include "catch.hpp"

using namespace trireme::parallel;

namespace {

// Every way to cut `count` gradients.
std::vector<BucketCuts> all_cuts(int count) {
  std::vector<BucketCuts> all;
  for (unsigned gaps = 0; gaps < 1U << (count - 1); ++gaps) {
    BucketCuts cuts{1};
    for (int gap = 0; gap < count - 1; ++gap) {
      if ((gaps >> gap & 1) != 0) {
        cuts.push_back(1);
      } else {
        ++cuts.back();
      }
    }
    all.push_back(cuts);
  }
  return all;
}

}  // namespace

TEST_CASE("a bucket ends with the gradient that reaches the cap") {
  const std::vector<std::int64_t> bytes = {10, 10, 10, 50, 5, 5};
  CHECK(cut_by_cap(bytes, 20, 20) == BucketCuts{2, 2, 2});
  CHECK(cut_by_cap(bytes, 20, 1) == BucketCuts{1, 2, 1, 2});
  CHECK(cut_by_cap(bytes, 1000, 1000) == BucketCuts{6});
  CHECK(cut_by_cap({}, 20, 1).empty());
}

TEST_CASE("exposed time is what is left when backward has ended") {
  const ReductionCost cost{.latency_seconds = 1, .seconds_per_byte = 0.1};
  const std::vector<ReadyGradient> gradients = {{10, 1}, {10, 5}, {20, 6}};
  CHECK(exposed_seconds({3}, gradients, cost) == Approx(5));
  CHECK(exposed_seconds({1, 2}, gradients, cost) == Approx(4));     // 1..3, then 6..10
  CHECK(exposed_seconds({2, 1}, gradients, cost) == Approx(5));     // 5..8, then 8..11
  CHECK(exposed_seconds({1, 1, 1}, gradients, cost) == Approx(4));  // 1..3, 5..7, then 7..10
}

TEST_CASE("the solved cuts is the best of all cuts") {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> seconds(0, 1);
  for (int round = 0; round < 50; ++round) {
    std::vector<ReadyGradient> gradients;
    double ready = 0;
    for (int i = 0; i < 9; ++i) {
      ready += seconds(random);
      gradients.push_back({static_cast<std::int64_t>(1 + 1000 * seconds(random)), ready});
    }
    const ReductionCost cost{.latency_seconds = seconds(random), .seconds_per_byte = 0.004 * seconds(random)};
    const BucketCuts solved = solve_buckets(gradients, cost);
    CHECK(std::accumulate(solved.begin(), solved.end(), 0) == 9);
    const double exposed = exposed_seconds(solved, gradients, cost);
    for (const BucketCuts& cuts : all_cuts(9)) CHECK(exposed <= exposed_seconds(cuts, gradients, cost) + 1e-9);
  }
}

TEST_CASE("where nothing can be hidden, one bucket is best") {
  const std::vector<ReadyGradient> gradients(20, ReadyGradient{.bytes = 1000, .ready_seconds = 1});
  CHECK(solve_buckets(gradients, {.latency_seconds = 1e-4, .seconds_per_byte = 1e-9}) == BucketCuts{20});
}

TEST_CASE("reductions that stop the computation add up, so one bucket is best") {
  const ReductionCost cost{.latency_seconds = 1, .seconds_per_byte = 0.1, .stops_compute = true};
  const std::vector<ReadyGradient> gradients = {{10, 100}, {20, 200}};
  CHECK(exposed_seconds({1, 1}, gradients, cost) == Approx(5));
  CHECK(solve_buckets(gradients, cost) == BucketCuts{2});
}

TEST_CASE("the cost is fitted to small and large buckets alike") {
  std::vector<CostSample> samples;
  for (const double bytes : {1e3, 1e5, 1e7, 1e8}) samples.push_back({bytes, 2e-4 + bytes * 8e-9});
  const ReductionCost cost = fit_cost(samples);
  CHECK(cost.latency_seconds == Approx(2e-4));
  CHECK(cost.seconds_per_byte == Approx(8e-9));
  const std::vector<CostSample> one = {{1000, 0.5}};
  CHECK(fit_cost(one).seconds(2000) == Approx(1));
  const std::vector<CostSample> falling = {{1000, 0.5}, {2000, 0.4}};
  CHECK(fit_cost(falling).seconds_per_byte == 0);
}

TEST_CASE("buckets are reduced in the order in which they are complete, not in that of the store") {
  const ReductionCost cost{.latency_seconds = 0, .seconds_per_byte = 0.1};
  const std::vector<ReadyGradient> last_first = {{10, 5}, {10, 3}, {10, 1}};
  CHECK(exposed_seconds({1, 1, 1}, last_first, cost) == Approx(1));  // 1..2, 3..4, 5..6
}
