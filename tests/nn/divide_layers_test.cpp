#include "trireme/nn/staged/divide_layers.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "catch.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/philox.hpp"

using namespace trireme;

namespace {

double most_expensive(std::span<const double> costs, const std::vector<Range>& stages) {
  double most = 0;
  for (const auto& [begin, end] : stages)
    most = std::max(most, std::accumulate(&costs[begin], &costs[begin] + (end - begin), 0.0));
  return most;
}

// The least maximum of all divisions.
double least_maximum(std::span<const double> costs, int num_stages) {
  if (num_stages == 1) return std::accumulate(costs.begin(), costs.end(), 0.0);
  double least = std::numeric_limits<double>::infinity();
  double first = 0;
  for (std::size_t layers = 1; layers + static_cast<std::size_t>(num_stages) <= costs.size() + 1; ++layers) {
    first += costs[layers - 1];
    least = std::min(least, std::max(first, least_maximum(costs.subspan(layers), num_stages - 1)));
  }
  return least;
}

}  // namespace

TEST_CASE("layers are divided into stages of which the most expensive one costs as little as can be") {
  for (std::uint64_t round = 0; round < 200; ++round) {
    std::vector<double> costs(1 + round % 9);
    for (std::size_t layer = 0; layer < costs.size(); ++layer) costs[layer] = philox_uniform(1, round, layer);
    for (int num_stages = 1; num_stages <= static_cast<int>(costs.size()); ++num_stages) {
      const std::vector<Range> stages = nn::divide_layers(costs, num_stages);
      REQUIRE(stages.size() == static_cast<std::size_t>(num_stages));
      std::int64_t next = 0;
      for (const auto& [begin, end] : stages) {
        REQUIRE((begin == next && end > begin));
        next = end;
      }
      REQUIRE(next == static_cast<std::int64_t>(costs.size()));
      REQUIRE(most_expensive(costs, stages) == Approx(least_maximum(costs, num_stages)).epsilon(1e-12));
    }
  }
}

TEST_CASE("layers of equal cost make stages as even as can be, the first ones longer") {
  const auto sizes = [](const std::vector<double>& costs, int num_stages) {
    std::vector<std::int64_t> counts;
    for (const Range& stage : nn::divide_layers(costs, num_stages)) counts.push_back(stage.count());
    return counts;
  };
  CHECK(sizes(std::vector<double>(7, 1), 3) == std::vector<std::int64_t>{3, 2, 2});
  CHECK(sizes({0, 1, 1, 1, 1, 1, 0}, 2) == std::vector<std::int64_t>{4, 3});
  CHECK(sizes({1, 1, 1, 1, 1, 1, 6}, 3) == std::vector<std::int64_t>{3, 3, 1});  // the maximum allows other divisions too
  CHECK_THROWS_AS(nn::divide_layers(std::vector<double>{1, 2}, 3), Error);
  CHECK_THROWS_AS(nn::divide_layers(std::vector<double>{1, -2}, 1), Error);
}
