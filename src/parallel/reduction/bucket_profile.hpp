#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/parallel/reduction/bucket_cuts.hpp"

namespace trireme::parallel {

// The case for which buckets are tuned.
struct TuningCase {
  std::vector<std::int64_t> gradient_bytes;
  std::vector<std::vector<int>> nodes;  // Group::nodes()
};

// A result of tuning as the text of a file (JSON) for later runs.
std::string to_profile(const TuningCase& tuned_for, const BucketTuning& tuning);

// Throws Error{corrupt_file} if the text is not a profile, Error{invalid_argument} if it was tuned for another case.
BucketTuning from_profile(std::string_view text, const TuningCase& wanted);

}  // namespace trireme::parallel
