#pragma once

#include <string>
#include <vector>

// A way to cut gradients into buckets, and the seconds of its steps, by round. All were measured in turn in each round.
struct TimedWay {
  std::string setting;  // "--bucket-mb 4"
  std::vector<double> seconds;
};

// Between which bounds the median of what was measured lies.
struct Interval {
  double least = 0;
  double most = 0;
};

// The narrowest pair of measured values between which the median lies with this probability; all of them where they are too
// few.
Interval interval_of_median(std::vector<double> values, double probability);

struct Recommendation {
  std::string setting;
  bool differs = false;  // from the default
  Interval gain;         // of the step: 0.1 is a tenth shorter than the default's, below 0 longer
  double noise = 0;      // half of the default's steps differ from their median by this part or more
  bool enough = true;    // rounds to tell a difference at all
};

// The quickest way whose steps are shorter than those of `ways[usual]` in the same rounds, whatever chance does; else that one.
// All ways together are mistaken once in 20 times.
Recommendation recommend(const std::vector<TimedWay>& ways, std::size_t usual);
