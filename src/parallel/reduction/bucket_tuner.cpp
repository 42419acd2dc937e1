#include "parallel/reduction/bucket_tuner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <utility>

#include "trireme/core/error.hpp"
#include "trireme/files/file_system.hpp"

namespace trireme::parallel {
namespace {

constexpr int first_steps = 2;  // not measured: they allocate memory and order the buckets
constexpr int observed_steps = 3;
constexpr int rounds = 5;  // steps with each candidate
constexpr int trials = 3;
constexpr double long_trial = 0.1;  // seconds: after so long a trial no larger sizes are tried
constexpr double noise = 0.99;      // less than this share of the time of the initial cuts counts as faster

constexpr std::int64_t mib = 1 << 20;

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

}  // namespace

BucketTuner::BucketTuner(const Group& group, const Group& copies, std::vector<std::int64_t> gradient_bytes, BucketCuts initial,
                         std::string profile)
    : group_(group),
      copies_(copies),
      bytes_(std::move(gradient_bytes)),
      initial_(std::move(initial)),
      profile_(std::move(profile)) {}

std::optional<BucketCuts> BucketTuner::next_cuts(const Trial& trial) {
  if (result_) return std::nullopt;
  if (step_ == 0 && !profile_.empty()) load_profile();
  if (result_) return result_->cuts;
  const int live = step_++ - first_steps - observed_steps;
  if (live < 0) return std::nullopt;
  if (candidates_.empty()) make_candidates(trial);
  const auto count = static_cast<int>(candidates_.size());
  if (live == rounds * count) return decide();
  return candidates_[static_cast<std::size_t>(live % count)].cuts;
}

void BucketTuner::begin() {
  if (result_) return;
  since_begin_.restart();
  if (step_ > first_steps && step_ <= first_steps + observed_steps) ready_.emplace_back(bytes_.size());
}

void BucketTuner::final(std::size_t gradient) {
  if (!result_ && candidates_.empty() && !ready_.empty()) ready_.back()[gradient] = since_begin_.seconds();
}

void BucketTuner::end() {
  if (result_ || candidates_.empty()) return;
  const auto live = static_cast<std::size_t>(step_ - 1 - first_steps - observed_steps);
  candidates_[live % candidates_.size()].steps.push_back(since_begin_.seconds());
}

void BucketTuner::give_up() {
  if (result_) return;
  --step_;
  const auto observed = static_cast<std::size_t>(std::clamp(step_ - first_steps, 0, observed_steps));
  if (ready_.size() > observed) ready_.pop_back();
}

void BucketTuner::load_profile() {
  std::string text;
  std::string failure;
  if (group_.rank() == 0) {
    try {
      if (file_system_of(profile_)->exists(profile_)) text = open_file(profile_)->content();
    } catch (const Error& error) {
      failure = error.what();
    }
  }
  text = group_.gather_texts(text, "bucket profile").front();
  refusal_ = group_.gather_texts(failure, "bucket profile").front();
  if (!text.empty()) {
    try {
      result_ = from_profile(text, tuning_case());
      result_->text = fmt::format("as found by the run that wrote {}", profile_);
    } catch (const Error& error) {
      refusal_ = fmt::format("{} was not used: {}", profile_, error.what());
    }
  }
  if (!result_) require_writable_profile();
}

// Called before the first step, so that tuning does not end with a file that can't be written.
void BucketTuner::require_writable_profile() const {
  group_.agree(
      [this] {
        if (group_.rank() != 0) return;
        require(!is_folder(profile_), "the bucket profile {} is a folder: name a file", profile_);
        const FileReplacement beside(profile_);
      },
      "try the bucket profile");
}

// If the file can't be written, the result is used all the same.
void BucketTuner::save_profile() {
  std::string failure;
  if (group_.rank() == 0) {
    try {
      const std::string text = to_profile(tuning_case(), *result_);
      FileReplacement file(profile_);
      file.write(std::as_bytes(std::span(text)));
      file.commit();
    } catch (const Error& error) {
      failure = fmt::format("{} was not written: {}", profile_, error.what());
    }
  }
  failure = group_.gather_texts(failure, "bucket profile").front();
  if (failure.empty()) return;
  result_->text += (result_->text.empty() ? "" : "; ") + failure;
}

// The elementwise maximum over the ranks with copies, so that all of them decide alike.
std::vector<double> BucketTuner::slowest(std::vector<double> seconds) const {
  copies_.all_reduce(std::span(seconds), ReduceOp::max, "bucket tuning").wait_on_host();
  return seconds;
}

void BucketTuner::make_candidates(const Trial& trial) {
  const std::int64_t total = std::accumulate(bytes_.begin(), bytes_.end(), std::int64_t{0});
  std::vector<CostSample> samples;
  for (std::int64_t bytes = std::min<std::int64_t>(64 << 10, total);; bytes = std::min(8 * bytes, total)) {
    std::vector<double> seconds;
    for (int attempt = 0; attempt < trials; ++attempt) seconds.push_back(trial(bytes));
    samples.push_back({static_cast<double>(bytes), slowest({median(seconds)}).front()});
    if (bytes == total || samples.back().seconds > long_trial) break;
  }
  std::vector<double> ready;
  for (std::size_t gradient = 0; gradient < bytes_.size(); ++gradient) {
    std::vector<double> times;
    for (const auto& step : ready_) times.push_back(step[gradient]);
    ready.push_back(median(times));
  }
  ready = slowest(std::move(ready));

  std::vector<ReadyGradient> gradients;
  for (std::size_t index = 0; index < bytes_.size(); ++index) gradients.push_back({bytes_[index], ready[index]});
  ReductionCost cost = fit_cost(samples);
  cost.stops_compute = slowest({group_.on_one_node() ? 0.0 : 1.0}).front() == 0;
  std::vector<BucketCuts> all = {initial_, solve_buckets(gradients, cost)};
  for (const std::int64_t cap : {mib, 4 * mib, total}) all.push_back(cut_by_cap(bytes_, cap, cap));
  for (BucketCuts& cuts : all) {
    if (std::ranges::find(candidates_, cuts, &Candidate::cuts) != candidates_.end()) continue;
    const double predicted = exposed_seconds(cuts, gradients, cost);
    candidates_.push_back({.cuts = std::move(cuts), .predicted_seconds = predicted, .steps = {}});
  }
}

BucketCuts BucketTuner::decide() {
  std::vector<double> steps;
  for (const Candidate& candidate : candidates_) steps.push_back(median(candidate.steps));
  steps = slowest(std::move(steps));
  auto best = static_cast<std::size_t>(std::ranges::min_element(steps) - steps.begin());
  if (steps[best] > noise * steps[0]) best = 0;
  result_ = BucketTuning{.cuts = candidates_[best].cuts,
                         .predicted_exposed_seconds = candidates_[best].predicted_seconds,
                         .step_seconds = steps[best],
                         .initial_step_seconds = steps[0],
                         .text = refusal_};
  if (!profile_.empty()) save_profile();
  return result_->cuts;
}

}  // namespace trireme::parallel
