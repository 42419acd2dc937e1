#include "data/sources/files_below.hpp"

#include <algorithm>
#include <cerrno>
#include <string>
#include <system_error>

#include "trireme/core/error.hpp"

namespace trireme::data {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_entry(const fs::path& path, std::string message, int error_number, std::string hint = {}) {
  throw Error({.code = ErrorCode::io,
               .message = std::move(message),
               .path = path.string(),
               .error_number = error_number,
               .hint = std::move(hint)});
}

[[noreturn]] void refuse_link(const fs::path& path, int error_number) {
  refuse_entry(path, "the link leads to no file and no folder", error_number, "mend the link or remove it");
}

// `above`: the folder's own path and those of the folders that it was reached through, without links.
void add_files_below(const fs::path& folder, std::vector<fs::path>& above, std::vector<fs::path>& files) {
  std::error_code failure;
  fs::path place = fs::canonical(folder, failure);
  if (failure) refuse_entry(folder, "the folder cannot be listed", failure.value());
  if (std::ranges::find(above, place) != above.end())
    refuse_entry(folder, "the link leads back to a folder that it lies in", ELOOP, "remove the link");
  above.push_back(std::move(place));
  for (const fs::directory_entry& entry : content_of_folder(folder)) {
    if (leads_to_folder(entry)) {
      add_files_below(entry.path(), above, files);
    } else if (entry.is_regular_file(failure)) {
      files.push_back(entry.path());
    }
  }
  above.pop_back();
}

}  // namespace

std::vector<fs::directory_entry> content_of_folder(const fs::path& folder) {
  std::vector<fs::directory_entry> content;
  std::error_code failure;
  for (fs::directory_iterator entry(folder, failure), end; !failure && entry != end; entry.increment(failure)) {
    if (!entry->path().filename().string().starts_with('.')) content.push_back(*entry);
  }
  if (failure) refuse_entry(folder, "the folder cannot be listed", failure.value());
  std::ranges::sort(content);
  return content;
}

bool leads_to_folder(const fs::directory_entry& entry) {
  std::error_code failure;
  const bool is_folder = entry.is_directory(failure);
  const bool exists = is_folder || entry.exists(failure);
  if (exists && !failure) return is_folder;
  std::error_code unknown;
  if (entry.is_symlink(unknown)) refuse_link(entry.path(), failure.value());
  refuse_entry(entry.path(), "it cannot be looked at", failure.value());
}

std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> above, files;
  add_files_below(folder, above, files);
  return files;
}

}  // namespace trireme::data
