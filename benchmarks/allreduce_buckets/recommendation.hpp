#pragma once

#include <string>
#include <vector>

// A way to cut gradients into buckets, and the seconds of its steps by round. Each round measured all ways in turn.
struct TimedWay {
  std::string setting;  // "--bucket-mb 4"
  std::vector<double> seconds;
};

// Bounds of the true median.
struct Interval {
  double least = 0;
  double most = 0;
};

// The narrowest pair of measured values between which the median lies with this probability; the smallest and the largest value
// where there are too few.
Interval interval_of_median(std::vector<double> values, double probability);

struct Recommendation {
  std::string setting;
  bool differs = false;  // from the default
  Interval gain;         // of the step: 0.1 is a tenth shorter than the default's, below 0 longer
  double noise = 0;      // half of the default's steps differ from their median by this part or more
  bool enough = true;    // there are enough rounds to see a difference
};

// The fastest way whose steps are shorter than those of `ways[usual]` in the same rounds by more than chance; otherwise
// ways[usual]. Over all ways together the recommendation is wrong once in 20 times.
Recommendation recommend(const std::vector<TimedWay>& ways, std::size_t usual);
