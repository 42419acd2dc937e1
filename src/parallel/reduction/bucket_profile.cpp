#include "parallel/reduction/bucket_profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>

#include "trireme/core/error.hpp"

namespace trireme::parallel {
namespace {

constexpr int format = 1;

std::int64_t sum(const std::vector<std::int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

std::string describe(const TuningCase& tuning_case) {
  std::size_t ranks = 0;
  for (const auto& node : tuning_case.nodes) ranks += node.size();
  return fmt::format("{} gradients of {} bytes, {} ranks on {} nodes", tuning_case.gradient_bytes.size(),
                     sum(tuning_case.gradient_bytes), ranks, tuning_case.nodes.size());
}

}  // namespace

std::string to_profile(const TuningCase& tuned_for, const BucketTuning& tuning) {
  const nlohmann::ordered_json json = {{"format", format},
                                       {"gradient_bytes", tuned_for.gradient_bytes},
                                       {"nodes", tuned_for.nodes},
                                       {"cuts", tuning.cuts},
                                       {"predicted_exposed_seconds", tuning.predicted_exposed_seconds},
                                       {"step_seconds", tuning.step_seconds},
                                       {"initial_step_seconds", tuning.initial_step_seconds}};
  return json.dump() + "\n";
}

BucketTuning from_profile(std::string_view text, const TuningCase& wanted) {
  TuningCase tuned_for;
  BucketTuning tuning;
  try {
    const auto json = nlohmann::json::parse(text);
    require(json.at("format").get<int>() == format, "its format is {}, this library reads {}", json.at("format").get<int>(),
            format);
    json.at("gradient_bytes").get_to(tuned_for.gradient_bytes);
    json.at("nodes").get_to(tuned_for.nodes);
    json.at("cuts").get_to(tuning.cuts);
    json.at("predicted_exposed_seconds").get_to(tuning.predicted_exposed_seconds);
    json.at("step_seconds").get_to(tuning.step_seconds);
    json.at("initial_step_seconds").get_to(tuning.initial_step_seconds);
  } catch (const nlohmann::json::exception& error) {
    throw Error({.code = ErrorCode::corrupt_file, .message = fmt::format("it is no bucket profile: {}", error.what())});
  }
  if (tuned_for.gradient_bytes != wanted.gradient_bytes || tuned_for.nodes != wanted.nodes) {
    const std::string had = describe(tuned_for);
    const std::string now = describe(wanted);
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = had == now ? fmt::format("it was tuned for other {}", now)
                                       : fmt::format("it was tuned for {}; here are {}", had, now)});
  }
  const auto held = std::accumulate(tuning.cuts.begin(), tuning.cuts.end(), std::int64_t{0});
  const bool empty = std::ranges::any_of(tuning.cuts, [](int count) { return count <= 0; });
  if (empty || held != std::ssize(wanted.gradient_bytes)) {
    throw Error({.code = ErrorCode::corrupt_file, .message = "its buckets do not hold every gradient once"});
  }
  return tuning;
}

}  // namespace trireme::parallel
