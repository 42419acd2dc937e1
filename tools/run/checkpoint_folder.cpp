#include "checkpoint_folder.hpp"

#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include "trireme/checkpoint/checkpoints.hpp"

namespace {

namespace fs = std::filesystem;

std::optional<std::uint64_t> number_of(std::string_view digits) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

}  // namespace

CommittedCheckpoints committed_checkpoints(const fs::path& folder) {
  CommittedCheckpoints found;
  std::error_code unknown;
  if (!fs::is_directory(folder, unknown)) return found;
  for (const std::int64_t step : trireme::checkpoint::committed_steps(folder)) {
    std::error_code gone;  // a job of another supervisor may be removing it
    const auto time = fs::last_write_time(trireme::checkpoint::checkpoint_folder(folder, step) / "manifest.json", gone);
    if (!gone) found.emplace(static_cast<std::uint64_t>(step), time);
  }
  return found;
}

CheckpointFolder::CheckpointFolder(fs::path path, std::string resume)
    : path_(std::move(path)), resume_(std::move(resume)), before_(committed_checkpoints(path_)) {}

bool CheckpointFolder::was_chosen(std::uint64_t step) const {
  if (resume_.empty() || resume_ == "auto") return true;
  const auto chosen = number_of(resume_);
  return chosen && step <= *chosen;
}

std::vector<std::uint64_t> CheckpointFolder::steps() const {
  std::vector<std::uint64_t> steps;
  for (const auto& [step, time] : committed_checkpoints(path_)) {
    const auto old = before_.find(step);
    if (old == before_.end() || old->second != time || was_chosen(step)) steps.push_back(step);
  }
  return steps;
}
