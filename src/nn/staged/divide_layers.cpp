#include "trireme/nn/staged/divide_layers.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "trireme/core/error.hpp"

namespace trireme::nn {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

// The division with the smallest value, by dynamic programming from the last stage to the first. join(cost, rest) is the value
// of a stage of this cost and of the stages after it. Among equal divisions, the first stages have the most layers.
template <typename Join>
std::pair<double, std::vector<Range>> best_division(std::span<const double> costs, int num_stages, const Join& join) {
  const auto layers = static_cast<std::int64_t>(costs.size());
  std::vector<double> value(costs.size() + 1, infinity);  // of the layers from here on, in the stages so far
  value.back() = 0;
  std::vector<std::vector<std::int64_t>> ends;  // [stage, from the last one][its first layer]: where it ends
  for (int stage = 0; stage < num_stages; ++stage) {
    const std::vector<double> after = std::exchange(value, std::vector<double>(costs.size() + 1, infinity));
    std::vector<std::int64_t>& end_of = ends.emplace_back(costs.size(), layers);
    for (std::int64_t begin = 0; begin < layers; ++begin) {
      const auto first = static_cast<std::size_t>(begin);
      double cost = 0;
      for (std::size_t last = first; last < costs.size(); ++last) {
        cost += costs[last];
        const double joined = join(cost, after[last + 1]);
        if (joined > value[first]) continue;
        value[first] = joined;
        end_of[first] = static_cast<std::int64_t>(last) + 1;
      }
    }
  }
  std::vector<Range> stages;
  std::int64_t begin = 0;
  for (auto end_of = ends.rbegin(); end_of != ends.rend(); ++end_of) {
    const std::int64_t end = (*end_of)[static_cast<std::size_t>(begin)];
    stages.push_back({begin, end});
    begin = end;
  }
  return {value.front(), stages};
}

}  // namespace

std::vector<Range> divide_layers(std::span<const double> costs, int num_stages) {
  require(num_stages > 0 && static_cast<std::size_t>(num_stages) <= costs.size(),
          "{} layers can't be divided into {} stages of one layer or more", costs.size(), num_stages);
  for (const double cost : costs) {
    require(std::isfinite(cost) && cost >= 0, "a layer's cost must be finite and 0 or more, got {}", cost);
  }
  const double bound = best_division(costs, num_stages, [](double cost, double rest) { return std::max(cost, rest); }).first;
  return best_division(costs, num_stages,
                       [bound](double cost, double rest) { return cost > bound ? infinity : cost * cost + rest; })
      .second;
}

}  // namespace trireme::nn
