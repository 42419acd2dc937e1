#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

// Committed checkpoints of a run by their steps: when each was committed. None where there is no such folder.
using CommittedCheckpoints = std::map<std::uint64_t, std::filesystem::file_time_type>;
CommittedCheckpoints committed_checkpoints(const std::filesystem::path& folder);

// What a run may resume from: its own checkpoints, and of those that were there before only what it resumed from itself.
class CheckpointFolder {
 public:
  // `resume`: the command's own choice, auto, none or a step. An empty path: there are no checkpoints.
  CheckpointFolder(std::filesystem::path path, std::string resume);

  std::vector<std::uint64_t> steps() const;  // ascending

 private:
  bool was_chosen(std::uint64_t step) const;

  std::filesystem::path path_;
  std::string resume_;
  CommittedCheckpoints before_;
};
