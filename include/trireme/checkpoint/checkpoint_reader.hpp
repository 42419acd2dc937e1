#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/checkpoint/manifest.hpp"
#include "trireme/core/export.hpp"
#include "trireme/files/file_system.hpp"

namespace trireme TRIREME_EXPORT {
namespace checkpoint {

// Reads a committed checkpoint in one process, for tools.
class CheckpointReader {
 public:
  // Reads the manifest in a folder "step-...". Throws Error{io, corrupt_file, not_available} with the folder's path.
  explicit CheckpointReader(const Location& folder) : CheckpointReader(folder, file_system_of(folder)) {}
  CheckpointReader(Location folder, std::shared_ptr<FileSystem> file_system);

  const Location& folder() const { return folder_; }
  const Manifest& manifest() const { return manifest_; }
  const SavedTensor* find(std::string_view name) const;  // null if there is no such tensor

  // Reads all elements of a tensor of the checkpoint, row-major. The files that hold the tensor stay open for the next call.
  // Throws Error{corrupt_file} if a checksum does not match.
  std::vector<std::byte> read(const SavedTensor& tensor) const;

  // Reads and checks everything. Returns a line for each damaged file and tensor; empty if the checkpoint is intact.
  std::vector<std::string> problems() const;

 private:
  const InputFile& input(int file) const;

  struct Inputs;

  Location folder_;
  std::shared_ptr<FileSystem> files_;
  Manifest manifest_;
  std::shared_ptr<Inputs> inputs_;
};

}  // namespace checkpoint
}  // namespace trireme
