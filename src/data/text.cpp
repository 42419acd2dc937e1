#include "trireme/data/text.hpp"

#include <algorithm>
#include <span>
#include <vector>

#include "trireme/core/error.hpp"
#include "trireme/core/file.hpp"

namespace trireme::data {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> files;
  try {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
  } catch (const fs::filesystem_error& error) {
    throw Error({.code = ErrorCode::io,
                 .message = "the folder cannot be listed",
                 .path = error.path1().string(),
                 .error_number = error.code().value()});
  }
  std::ranges::sort(files);
  return files;
}

void append(std::string& text, const fs::path& path) {
  const File file = File::open(path);
  const std::size_t before = text.size();
  text.resize(before + file.size());
  file.read_at(std::as_writable_bytes(std::span(text).subspan(before)), 0);
}

}  // namespace

std::string read_text(const fs::path& path) {
  const std::vector<fs::path> files = fs::is_directory(path) ? files_below(path) : std::vector{path};
  std::string text;
  for (const fs::path& file : files) {
    if (&file != &files.front()) text += '\n';
    append(text, file);
  }
  if (text.empty()) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = "there is no text",
                 .path = path.string(),
                 .hint = "name a file that is not empty, or a folder of such files"});
  }
  return text;
}

}  // namespace trireme::data
