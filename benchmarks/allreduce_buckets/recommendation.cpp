#include "recommendation.hpp"

#include <algorithm>
#include <cmath>

#include "measurement/measurement.hpp"

namespace {

constexpr double mistakes = 0.05;  // the probability of a wrong recommendation

// The probability that the true median of n values lies outside of the k-th smallest and the k-th largest, k from 1. Each value
// lies above or below the median with probability 1/2, as in tosses of a coin.
double outside(std::size_t n, std::size_t k) {
  double chance = std::pow(0.5, static_cast<double>(n));  // that no value lies below
  double sum = 0;
  for (std::size_t below = 0; below < k; ++below) {
    sum += chance;
    chance *= static_cast<double>(n - below) / static_cast<double>(below + 1);
  }
  return 2 * sum;
}

}  // namespace

Interval interval_of_median(std::vector<double> values, double probability) {
  std::ranges::sort(values);
  std::size_t k = 1;
  while (2 * (k + 1) <= values.size() && outside(values.size(), k + 1) <= 1 - probability) ++k;
  return {values[k - 1], values[values.size() - k]};
}

Recommendation recommend(const std::vector<TimedWay>& ways, std::size_t usual) {
  const TimedWay& base = ways[usual];
  const double typical = median(base.seconds);
  std::vector<double> deviations;
  for (const double seconds : base.seconds) deviations.push_back(std::abs(seconds - typical) / typical);
  Recommendation result{.setting = base.setting, .gain = {}, .noise = median(deviations)};
  const double probability = 1 - mistakes / std::max<double>(1, static_cast<double>(ways.size()) - 1);
  result.enough = outside(base.seconds.size(), 1) <= 1 - probability;
  double best = 0;
  for (const TimedWay& way : ways) {
    std::vector<double> gains;
    for (std::size_t round = 0; round < base.seconds.size(); ++round) {
      gains.push_back((base.seconds[round] - way.seconds[round]) / base.seconds[round]);
    }
    const Interval gain = interval_of_median(gains, probability);
    const double middle = median(gains);
    if (!result.enough || gain.least <= 0 || middle <= best) continue;
    best = middle;
    result.setting = way.setting;
    result.differs = true;
    result.gain = gain;
  }
  return result;
}
