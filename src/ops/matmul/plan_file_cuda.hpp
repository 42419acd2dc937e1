#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "ops/matmul/matmul_algorithm_cuda.hpp"

// What products were timed to be best with, kept for later runs: JSON, a file for each GPU model and version of cuBLASLt.
namespace trireme::ops::cuda {

// What times are true of.
struct PlanPlatform {
  std::string gpu;  // "NVIDIA H200"
  std::size_t cublaslt = 0;

  bool operator==(const PlanPlatform&) const = default;
};

using TimedPlans = std::map<std::string, TimedAlgorithm, std::less<>>;  // by describe(problem)

std::string to_json(const PlanPlatform& platform, const TimedPlans& plans);
// Throws Error{corrupt_file} where the text is no such file, Error{invalid_argument} where it is of another platform.
TimedPlans from_json(std::string_view text, const PlanPlatform& platform);

// What TRIREME_PLAN_CACHE and HOME say, null when unset; empty where there is no folder to keep plans in.
std::filesystem::path plan_folder(const char* cache, const char* home);

class PlanFile {
 public:
  // Reads what there is; a file that can't be used is passed over with a message. An empty folder keeps nothing.
  PlanFile(const std::filesystem::path& folder, PlanPlatform platform);

  const TimedAlgorithm* find(std::string_view problem) const;  // null where it was not timed
  // Written at once, beside what others have written meanwhile; where that fails a message says so, the first time.
  void add(const std::string& problem, const TimedAlgorithm& timed);

 private:
  std::filesystem::path path_;
  PlanPlatform platform_;
  TimedPlans plans_;
};

}  // namespace trireme::ops::cuda
