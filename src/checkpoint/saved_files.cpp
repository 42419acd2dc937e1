#include "checkpoint/saved_files.hpp"

#include <fmt/format.h>

#include <span>
#include <utility>
#include <vector>

#include "trireme/core/error.hpp"
#include "trireme/files/crc32c.hpp"

namespace trireme::checkpoint {

std::unique_ptr<InputFile> open_saved(const FileSystem& files, const Location& path, const SavedFile& file) {
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
