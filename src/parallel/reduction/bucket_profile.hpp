#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/parallel/reduction/bucket_cuts.hpp"

namespace trireme::parallel {

// What buckets are tuned for.
struct TuningCase {
  std::vector<std::int64_t> gradient_bytes;
  std::vector<std::vector<int>> nodes;  // Group::nodes()
};

// A tuning as a file for later runs: JSON.
std::string to_profile(const TuningCase& tuned_for, const BucketTuning& tuning);

// Throws Error{corrupt_file} where the text is no profile, Error{invalid_argument} where it was tuned for another case.
BucketTuning from_profile(std::string_view text, const TuningCase& wanted);

}  // namespace trireme::parallel
