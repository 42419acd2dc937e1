#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

// The committed checkpoints of a run: step and time of the commit. Empty if there is no such folder.
using CommittedCheckpoints = std::map<std::uint64_t, std::filesystem::file_time_type>;
CommittedCheckpoints committed_checkpoints(const std::filesystem::path& folder);

// The checkpoints that a run may resume from: its own, and those among earlier ones that `resume` allows: all with auto, none
// with none, and those up to a given step.
class CheckpointFolder {
 public:
  // `resume`: what the command itself says: auto, none or a step. An empty path: there are no checkpoints.
  CheckpointFolder(std::filesystem::path path, std::string resume);

  std::vector<std::uint64_t> steps() const;  // ascending

 private:
  bool was_chosen(std::uint64_t step) const;

  std::filesystem::path path_;
  std::string resume_;
  CommittedCheckpoints before_;
};
