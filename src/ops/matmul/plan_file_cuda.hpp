#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "ops/matmul/matmul_algorithm_cuda.hpp"

// The fastest algorithms of products, kept for later runs: a JSON file for each GPU model and version of cuBLASLt.
namespace trireme::ops::cuda {

// The platform that times are valid for.
struct PlanPlatform {
  std::string gpu;  // "NVIDIA H200"
  std::size_t cublaslt = 0;

  bool operator==(const PlanPlatform&) const = default;
};

using TimedPlans = std::map<std::string, TimedAlgorithm, std::less<>>;  // by describe(problem)

std::string to_json(const PlanPlatform& platform, const TimedPlans& plans);
// Throws Error{corrupt_file} if the text is not such a file, Error{invalid_argument} if it is of another platform.
TimedPlans from_json(std::string_view text, const PlanPlatform& platform);

// The folder for plans, from the values of TRIREME_PLAN_CACHE and HOME (null if unset); empty if there is none.
std::filesystem::path plan_folder(const char* cache, const char* home);

class PlanFile {
 public:
  // Reads the file if there is one, or logs why it can't be used. With an empty folder nothing is kept.
  PlanFile(const std::filesystem::path& folder, PlanPlatform platform);

  const TimedAlgorithm* find(std::string_view problem) const;  // null if it was not timed
  // Writes the file at once, merged with what other processes have written since. The first failure is logged.
  void add(const std::string& problem, const TimedAlgorithm& timed);

 private:
  std::filesystem::path path_;
  PlanPlatform platform_;
  TimedPlans plans_;
};

}  // namespace trireme::ops::cuda
