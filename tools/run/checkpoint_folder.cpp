#include "checkpoint_folder.hpp"

#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

namespace {

namespace fs = std::filesystem;

std::optional<std::uint64_t> number_of(std::string_view digits) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

std::optional<std::uint64_t> step_of(const std::string& name) {
  constexpr std::string_view prefix = "step-";
  constexpr std::size_t digits = 9;
  if (!name.starts_with(prefix) || name.size() < prefix.size() + digits) return std::nullopt;
  return number_of(std::string_view(name).substr(prefix.size()));
}

}  // namespace

CommittedCheckpoints committed_checkpoints(const fs::path& folder) {
  CommittedCheckpoints found;
  std::error_code failure;
  for (auto entry = fs::directory_iterator(folder, failure); !failure && entry != fs::directory_iterator();
       entry.increment(failure)) {
    const auto step = step_of(entry->path().filename());
    std::error_code missing;
    const auto time = fs::last_write_time(entry->path() / "manifest.json", missing);
    if (step && !missing) found.emplace(*step, time);
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
