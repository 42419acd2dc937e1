#include "trainer/decisions.hpp"

#include <fmt/format.h>

namespace trireme::trainer {

namespace {

std::string text_of(const parallel::BucketTuning& tuning) {
  return fmt::format(
      "gradient buckets: {}, {:.1f} ms exposed as predicted; a step takes {:.1f} ms, with buckets of 25 MiB {:.1f} ms{}{}",
      tuning.cuts.size(), 1e3 * tuning.predicted_exposed_seconds, 1e3 * tuning.step_seconds, 1e3 * tuning.initial_step_seconds,
      tuning.text.empty() ? "" : "; ", tuning.text);
}

}  // namespace

std::vector<std::string> Decisions::take(const parallel::DataParallel& replicas) {
  std::vector<std::string> lines;
  if (const auto tuning = replicas.tuning(); tuning && !tuned_) {
    lines.push_back(text_of(*tuning));
    tuned_ = true;
  }
  if (const auto compression = replicas.compression_decision(); compression && !compressed_) {
    lines.push_back(compression->text);
    compressed_ = true;
  }
  return lines;
}

}  // namespace trireme::trainer
