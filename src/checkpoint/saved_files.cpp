#include "checkpoint/saved_files.hpp"

#include <fmt/format.h>

#include <span>
#include <utility>
#include <vector>

#include "trireme/core/error.hpp"
#include "trireme/files/crc32c.hpp"

namespace trireme::checkpoint {

std::string read_text(const FileSystem& files, const std::filesystem::path& path) {
  const auto file = files.open(path);
  std::string text(file->size(), '\0');
  file->read_at(std::as_writable_bytes(std::span(text)), 0);
  return text;
}

std::unique_ptr<InputFile> open_saved(const FileSystem& files, const std::filesystem::path& path, const SavedFile& file) {
  auto input = files.open(path);
  const auto fail = [&](std::string what) {
    throw Error({.code = ErrorCode::corrupt_file,
                 .message = "the checkpoint is damaged: " + std::move(what),
                 .path = path.string(),
                 .hint = "resume from another step"});
  };
  const std::uint64_t size = input->size();
  if (size != file.bytes) fail(fmt::format("the file has {} bytes instead of {}", size, file.bytes));
  std::vector<std::byte> header(file.header_bytes);
  input->read_at(header, 0);
  if (crc32c(header) != file.header_checksum) fail("the header does not fit its checksum");
  return input;
}

}  // namespace trireme::checkpoint
