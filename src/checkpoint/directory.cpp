#include "checkpoint/directory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <random>
#include <ranges>
#include <span>
#include <utility>

#include "checkpoint/writer_sign.hpp"
#include "trireme/checkpoint/claim.hpp"
#include "trireme/core/error.hpp"

namespace trireme::checkpoint {
namespace {

constexpr std::string_view step_prefix = "step-";
constexpr std::string_view temporary_prefix = ".tmp-";
constexpr std::string_view aside_prefix = "left-";

// An object store has no rename of a folder in one act. There a checkpoint is written where it will lie, and its manifest, one
// object, commits it. Until then `writing_name` says which job is at it; the manifest of one that is put aside has another
// name.
constexpr const char* writing_name = "writing";
constexpr const char* manifest_aside_name = "left-manifest.json";

constexpr int first_version = 1;

// The folder of a checkpoint: "step-000000010", or "step-000000010-2" for the second one of this step. Other spellings of the
// number do not count.
struct Version {
  std::int64_t step = 0;
  int number = first_version;
  std::string name;

  auto order() const { return std::pair(step, number); }
};

constexpr std::size_t longest_job_id = 64;

bool is_job_id(std::string_view text) {
  return !text.empty() && text.size() <= longest_job_id &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isalnum(c) != 0; });
}

// Returns false where the text is not a number.
template <typename T>
bool parse_number(std::string_view text, T& number) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  return failure == std::errc() && end == text.data() + text.size();
}

std::string name_of(std::int64_t step, int number) {
  const std::string name = fmt::format("{}{:09}", step_prefix, step);
  return number == first_version ? name : fmt::format("{}-{}", name, number);
}

std::optional<Version> version_of(std::string_view name) {
  if (!name.starts_with(step_prefix)) return std::nullopt;
  const std::string_view rest = name.substr(step_prefix.size());
  const std::size_t dash = std::min(rest.find('-'), rest.size());
  Version version{.step = 0, .number = first_version, .name = std::string(name)};
  if (!parse_number(rest.substr(0, dash), version.step)) return std::nullopt;
  if (dash < rest.size() && !parse_number(rest.substr(dash + 1), version.number)) return std::nullopt;
  const bool is_own = version.step >= 0 && version.number >= first_version && name == name_of(version.step, version.number);
  return is_own ? std::optional(version) : std::nullopt;
}

// In ascending order.
std::vector<Version> committed_versions(const FileSystem& files, const Location& directory) {
  std::vector<Version> versions;
  for (const std::string& name : files.names_in(directory)) {
    const auto version = version_of(name);
    if (version && files.exists(directory / name / manifest_name)) versions.push_back(*version);
  }
  std::ranges::sort(versions, {}, &Version::order);
  return versions;
}

// An unused name for another checkpoint of this step, so that a rename can commit it while the old one still exists.
std::string next_name(const FileSystem& files, const Location& directory, std::int64_t step) {
  int number = first_version;
  for (const std::string& name : files.names_in(directory)) {
    const auto version = version_of(name);
    if (version && version->step == step) number = std::max(number, version->number + 1);
  }
  return name_of(step, number);
}

void write_durably(FileSystem& files, const Location& path, const std::string& text) {
  const auto file = files.create(path);
  file->reserve(text.size());
  file->write(std::as_bytes(std::span(text)));
  file->sync();
  file->close();
}

Location free_name(const FileSystem& files, const Location& wanted) {
  for (int attempt = 0;; ++attempt) {
    Location location = attempt == 0 ? wanted : wanted.beside(fmt::format("-{}", attempt));
    if (!files.exists(location)) return location;
  }
}

// Puts checkpoints of later steps aside, durably, before the one of this step is committed: so the newest is never one of
// those.
void put_later_aside(FileSystem& files, const Location& directory, std::int64_t step) {
  std::vector<Version> later = committed_versions(files, directory);
  std::erase_if(later, [step](const Version& version) { return version.step <= step; });
  for (const Version& version : later) {
    const Location folder = directory / version.name;
    if (files.is_object_store()) {
      files.rename(folder / manifest_name, folder / manifest_aside_name);
      continue;
    }
    files.rename(directory / version.name, free_name(files, directory / fmt::format("{}{}", aside_prefix, version.name)));
  }
  if (!later.empty()) files.sync_folder(directory);
}

// Whether a name is "step-000000010", possibly with a suffix from free_name().
bool is_version_or_copy(std::string_view name) {
  if (version_of(name)) return true;
  const std::size_t dash = name.rfind('-');
  int copy = 0;
  return dash != name.npos && parse_number(name.substr(dash + 1), copy) && copy > 0 &&
         name.substr(dash + 1) == std::to_string(copy) && version_of(name.substr(0, dash));
}

// The job in a name from temporary_path(); empty for other names.
std::string job_of_temporary(std::string_view name) {
  if (!name.starts_with(temporary_prefix)) return {};
  name.remove_prefix(temporary_prefix.size());
  const std::size_t dash = std::min(name.find('-'), name.size());
  const std::string job(name.substr(0, dash));
  if (dash == name.size() || !is_job_id(job)) return {};
  name.remove_prefix(dash + 1);
  return is_version_or_copy(name) || name == writer_sign_name ? job : std::string();
}

// Whether put_later_aside() has put this folder aside.
bool is_aside(const FileSystem& files, const Location& directory, std::string_view name) {
  if (name.starts_with(aside_prefix) && is_version_or_copy(name.substr(aside_prefix.size()))) return true;
  return files.is_object_store() && version_of(name) && files.exists(directory / std::string(name) / manifest_aside_name);
}

// In an object store: whether a job is writing this checkpoint, or has left it unfinished.
bool is_unfinished(const FileSystem& files, const Location& directory, const std::string& name) {
  return files.is_object_store() && version_of(name) && !files.exists(directory / name / manifest_name) &&
         !is_aside(files, directory, name);
}

// The job that writes this folder. Empty if the folder does not say, for example when it is half removed.
std::string writer_of(const FileSystem& files, const Location& folder) {
  const Location path = folder / writing_name;
  return files.exists(path) ? files.open(path)->content() : std::string();
}

// Renames it first, so that a half-removed folder is never taken for a checkpoint.
void remove_checkpoint(FileSystem& files, const Location& directory, const std::string& name, const std::string& job) {
  if (files.is_object_store()) return remove_folder(files, directory / name);
  const Location aside = free_name(files, temporary_path(directory, job, name));
  files.rename(directory / name, aside);
  files.sync_folder(directory);
  files.remove_all(aside);
}

// Removes the entries that the predicate chooses and returns their names.
template <typename Predicate>
std::vector<std::string> remove_if(FileSystem& files, const Location& directory, const Predicate& chosen) {
  std::vector<std::string> names = files.names_in(directory);
  std::erase_if(names, [&chosen](const std::string& name) { return !chosen(name); });
  for (const std::string& name : names) files.remove_all(directory / name);
  return names;
}

}  // namespace

Location checkpoint_folder(const Location& directory, std::int64_t step, const FileSystem& file_system) {
  std::string name = name_of(step, first_version);
  for (const Version& version : committed_versions(file_system, directory)) {
    if (version.step == step) name = version.name;
  }
  return directory / name;
}

Location checkpoint_folder(const Location& directory, std::int64_t step) {
  return checkpoint_folder(directory, step, *file_system_of(directory));
}

Location newest_folder(const Location& run) {
  if (file_system_of(run)->exists(run / manifest_name)) return run;
  const auto steps = committed_steps(run);
  require(!steps.empty(), "{} is not a checkpoint and holds none", run.string());
  return checkpoint_folder(run, steps.back());
}

std::vector<std::string> prune(const Location& directory, int keep, FileSystem& file_system) {
  require(keep >= 1, "{} checkpoints to keep, but it must be 1 or more", keep);
  require_unclaimed(directory, file_system);
  std::vector<std::string> removed = keep_newest(file_system, directory, keep, random_job());
  const auto aside =
      remove_if(file_system, directory, [&](const std::string& name) { return is_aside(file_system, directory, name); });
  removed.insert(removed.end(), aside.begin(), aside.end());
  return removed;
}

std::vector<std::string> prune(const Location& directory, int keep) {
  return prune(directory, keep, *file_system_of(directory));
}

std::vector<std::string> remove_unfinished(const Location& directory) {
  return remove_unfinished(directory, *file_system_of(directory));
}

std::vector<std::string> remove_unfinished(const Location& directory, FileSystem& file_system) {
  require_unclaimed(directory, file_system);
  return remove_if(file_system, directory, [&](const std::string& name) {
    return !job_of_temporary(name).empty() || name == writer_sign_name || is_unfinished(file_system, directory, name);
  });
}

std::vector<std::int64_t> committed_steps(const Location& directory, const FileSystem& file_system) {
  std::vector<std::int64_t> steps;
  for (const Version& version : committed_versions(file_system, directory)) {
    if (steps.empty() || steps.back() != version.step) steps.push_back(version.step);
  }
  return steps;
}

std::vector<std::int64_t> committed_steps(const Location& directory) {
  return committed_steps(directory, *file_system_of(directory));
}

std::string random_job() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}", device(), device());
}

std::string own_job() {
  const char* value = std::getenv("TRIREME_JOB_ID");
  if (value == nullptr || *value == '\0') return random_job();
  const std::string job = value;
  require(is_job_id(job), "TRIREME_JOB_ID is \"{}\", but must be 1 to {} letters and digits: file names contain it", job,
          longest_job_id);
  return job;
}

Location temporary_path(const Location& directory, const std::string& job, const std::string& name) {
  return directory / fmt::format("{}{}-{}", temporary_prefix, job, name);
}

void make_directory(FileSystem& files, const Location& directory) {
  files.create_folder(directory);
  files.sync_folder(directory.parent());
}

void remove_leftovers(FileSystem& files, const Location& directory, const std::string& job) {
  remove_if(files, directory, [&](const std::string& name) {
    if (!is_unfinished(files, directory, name)) return job_of_temporary(name) == job;
    const std::string writer = writer_of(files, directory / name);
    return writer.empty() || writer == job;
  });
}

Location make_folder(FileSystem& files, const Location& directory, const std::string& job, std::int64_t step) {
  if (!files.is_object_store()) {
    Location folder = temporary_path(directory, job, name_of(step, first_version));
    files.create_folder(folder);
    return folder;
  }
  for (;;) {
    Location folder = directory / next_name(files, directory, step);
    try {
      write_durably(files, folder / writing_name, job);
      return folder;
    } catch (const Error& error) {  // another job has just taken the name
      if (error.fields().error_number != EEXIST) throw;
    }
  }
}

void remove_folder(FileSystem& files, const Location& folder) {
  files.remove_all(folder / manifest_name);
  files.remove_all(folder);
}

void commit(FileSystem& files, const Location& directory, const Location& folder, std::int64_t step,
            const std::string& manifest) {
  if (files.is_object_store()) {
    put_later_aside(files, directory, step);
    write_durably(files, folder / manifest_name, manifest);
    try {
      files.remove_all(folder / writing_name);
    } catch (const Error&) {  // beside a manifest it says nothing
    }
    return;
  }
  const Location unnamed = folder / fmt::format("{}.tmp", manifest_name);
  write_durably(files, unnamed, manifest);
  files.rename(unnamed, folder / manifest_name);
  files.sync_folder(folder);
  put_later_aside(files, directory, step);
  files.rename(folder, directory / next_name(files, directory, step));
  files.sync_folder(directory);
}

std::vector<std::string> keep_newest(FileSystem& files, const Location& directory, int keep, const std::string& job) {
  std::vector<std::string> removed;
  std::int64_t step = -1;
  for (const Version& version : committed_versions(files, directory) | std::views::reverse) {
    const bool replaced = version.step == step;
    if (!replaced) --keep;
    step = version.step;
    if (!replaced && keep >= 0) continue;
    remove_checkpoint(files, directory, version.name, job);
    removed.push_back(version.name);
  }
  std::ranges::reverse(removed);
  return removed;
}

}  // namespace trireme::checkpoint
