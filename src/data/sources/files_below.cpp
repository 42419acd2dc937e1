#include "data/sources/files_below.hpp"

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "trireme/core/error.hpp"

namespace trireme::data {
namespace {

[[noreturn]] void refuse_link(const Location& path, std::string message, int error_number, std::string hint) {
  throw Error({.code = ErrorCode::io,
               .message = std::move(message),
               .path = path.string(),
               .error_number = error_number,
               .hint = std::move(hint)});
}

// `above`: the resolved paths of the folder and of the folders that it was reached through.
void add_files_below(const Location& folder, std::vector<Location>& above, std::vector<Location>& files) {
  Location place = file_system_of(folder)->real(folder);
  if (std::ranges::find(above, place) != above.end())
    refuse_link(folder, "the link leads back to a folder that it lies in", ELOOP, "remove the link");
  above.push_back(std::move(place));
  for (const FolderEntry& entry : content_of_folder(folder)) {
    if (leads_to_folder(folder, entry)) {
      add_files_below(folder / entry.name, above, files);
    } else if (entry.kind == FileKind::file) {
      files.push_back(folder / entry.name);
    }
  }
  above.pop_back();
}

}  // namespace

std::vector<FolderEntry> content_of_folder(const Location& folder) {
  std::vector<FolderEntry> content = file_system_of(folder)->entries_of(folder);
  std::erase_if(content, [](const FolderEntry& entry) { return entry.name.starts_with('.'); });
  return content;
}

bool leads_to_folder(const Location& folder, const FolderEntry& entry) {
  if (entry.kind != FileKind::none) return entry.kind == FileKind::folder;
  const Location location = folder / entry.name;
  const FileKind kind = file_system_of(location)->kind_of(location);  // throws where it can't be read
  if (kind == FileKind::none) refuse_link(location, "the link leads to no file and no folder", 0, "mend the link or remove it");
  return kind == FileKind::folder;
}

std::vector<Location> files_below(const Location& folder) {
  std::vector<Location> above, files;
  add_files_below(folder, above, files);
  return files;
}

}  // namespace trireme::data
