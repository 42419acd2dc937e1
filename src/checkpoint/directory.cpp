#include "checkpoint/directory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <span>

#include "trireme/core/error.hpp"

namespace trireme::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view step_prefix = "step-";
constexpr std::string_view temporary_prefix = ".tmp-";
constexpr std::string_view aside_prefix = "left-";

std::optional<std::int64_t> step_of(std::string_view name) {
  if (!name.starts_with(step_prefix)) return std::nullopt;
  const std::string_view digits = name.substr(step_prefix.size());
  std::int64_t step = 0;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), step);
  if (failure != std::errc() || end != digits.data() + digits.size() || step < 0) return std::nullopt;
  return step;
}

void write_durably(FileSystem& files, const fs::path& path, const std::string& text) {
  const auto file = files.create(path);
  file->reserve(text.size());
  file->write(std::as_bytes(std::span(text)));
  file->sync();
  file->close();
}

// A name beside `folder` that is free.
fs::path free_name(const FileSystem& files, const fs::path& directory, const std::string& prefix, const fs::path& folder) {
  for (int attempt = 0;; ++attempt) {
    const fs::path path = directory / fmt::format("{}{}{}", prefix, folder.filename().string(),
                                                  attempt == 0 ? std::string() : fmt::format("-{}", attempt));
    if (!files.exists(path)) return path;
  }
}

// First out of the way, so that half of it is never taken for a checkpoint.
void remove_checkpoint(FileSystem& files, const fs::path& directory, const fs::path& folder) {
  const fs::path aside = free_name(files, directory, std::string(temporary_prefix), folder);
  files.rename(folder, aside);
  files.sync_folder(directory);
  files.remove_all(aside);
}

}  // namespace

fs::path checkpoint_folder(const fs::path& directory, std::int64_t step) {
  return directory / fmt::format("{}{:09}", step_prefix, step);
}

fs::path temporary_folder(const fs::path& directory, std::int64_t step, std::uint64_t unique) {
  return directory / fmt::format("{}{:09}-{:016x}", temporary_prefix, step, unique);
}

std::vector<std::string> prune(const fs::path& directory, int keep, FileSystem& file_system) {
  require(keep >= 1, "{} checkpoints to keep: 1 or more", keep);
  const auto before = file_system.names_in(directory);
  keep_newest(file_system, directory, keep);
  remove_leftovers(file_system, directory);
  for (const std::string& name : before) {
    if (name.starts_with(aside_prefix)) file_system.remove_all(directory / name);
  }
  const auto after = file_system.names_in(directory);
  std::vector<std::string> removed;
  std::ranges::set_difference(before, after, std::back_inserter(removed));
  return removed;
}

std::vector<std::int64_t> committed_steps(const fs::path& directory, const FileSystem& file_system) {
  std::vector<std::int64_t> steps;
  for (const std::string& name : file_system.names_in(directory)) {
    const auto step = step_of(name);
    if (step && file_system.exists(directory / name / manifest_name)) steps.push_back(*step);
  }
  std::ranges::sort(steps);
  return steps;
}

void make_directory(FileSystem& files, const fs::path& directory) {
  files.create_folder(directory);
  files.sync_folder(directory.has_parent_path() ? directory.parent_path() : fs::path("."));
}

void remove_leftovers(FileSystem& files, const fs::path& directory) {
  for (const std::string& name : files.names_in(directory)) {
    if (name.starts_with(temporary_prefix)) files.remove_all(directory / name);
  }
}

void commit(FileSystem& files, const fs::path& directory, const fs::path& temporary, std::int64_t step,
            const std::string& manifest) {
  const fs::path unnamed = temporary / fmt::format("{}.tmp", manifest_name);
  write_durably(files, unnamed, manifest);
  files.rename(unnamed, temporary / manifest_name);
  files.sync_folder(temporary);
  const fs::path folder = checkpoint_folder(directory, step);
  std::optional<fs::path> replaced;
  if (files.exists(folder)) {
    replaced = free_name(files, directory, std::string(temporary_prefix), folder);
    files.rename(folder, *replaced);
  }
  files.rename(temporary, folder);
  files.sync_folder(directory);
  if (replaced) files.remove_all(*replaced);
  for (const std::int64_t later : committed_steps(directory, files)) {
    if (later <= step) continue;
    const fs::path left = checkpoint_folder(directory, later);
    files.rename(left, free_name(files, directory, std::string(aside_prefix), left));
  }
}

void keep_newest(FileSystem& files, const fs::path& directory, int keep) {
  const auto steps = committed_steps(directory, files);
  for (std::size_t index = 0; index + static_cast<std::size_t>(keep) < steps.size(); ++index) {
    remove_checkpoint(files, directory, checkpoint_folder(directory, steps[index]));
  }
}

}  // namespace trireme::checkpoint
