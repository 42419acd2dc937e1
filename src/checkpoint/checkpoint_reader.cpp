#include "trireme/checkpoint/checkpoint_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>
#include <utility>

#include "checkpoint/directory.hpp"
#include "checkpoint/part_reader.hpp"
#include "checkpoint/saved_files.hpp"
#include "trireme/core/error.hpp"
#include "trireme/files/digest.hpp"

namespace trireme::checkpoint {

// Those that were opened so far.
struct CheckpointReader::Inputs {
  std::mutex mutex;
  std::map<int, std::unique_ptr<InputFile>> of_files;
};

CheckpointReader::CheckpointReader(Location folder, std::shared_ptr<FileSystem> file_system)
    : folder_(std::move(folder)),
      files_(std::move(file_system)),
      manifest_(parse_manifest(files_->open(folder_ / manifest_name)->content(), folder_ / manifest_name)),
      inputs_(std::make_shared<Inputs>()) {}

const InputFile& CheckpointReader::input(int file) const {
  const SavedFile& saved = manifest_.files[static_cast<std::size_t>(file)];
  const std::scoped_lock lock(inputs_->mutex);
  auto& opened = inputs_->of_files[file];
  if (opened == nullptr) opened = open_saved(*files_, folder_ / saved.name, saved);
  return *opened;
}

const SavedTensor* CheckpointReader::find(std::string_view name) const {
  const auto found = std::ranges::lower_bound(manifest_.tensors, name, {}, &SavedTensor::name);
  return found != manifest_.tensors.end() && found->name == name ? &*found : nullptr;
}

std::vector<std::byte> CheckpointReader::read(const SavedTensor& tensor) const {
  for (const TensorPart& part : tensor.parts) input(part.file);
  // Allocates only after all files were found to have the size in the manifest.
  std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.shape.numel()) * size_of(tensor.dtype));
  const std::vector<StatePiece> all{{.data = bytes.data(), .elements = {0, tensor.shape.numel()}}};
  for (const TensorPart& part : tensor.parts) {
    const Location path = folder_ / manifest_.files[static_cast<std::size_t>(part.file)].name;
    PartReader(input(part.file), path, tensor, part, manifest_.chunk_bytes).copy(copies_of(part, tensor.dtype, all));
  }
  return bytes;
}

std::vector<std::string> CheckpointReader::problems() const {
  std::vector<std::string> lines;
  const auto attempt = [&](const auto& action) {
    try {
      action();
    } catch (const Error& error) {
      lines.emplace_back(error.what());
    }
  };
  for (int file = 0; file < std::ssize(manifest_.files); ++file) attempt([&] { input(file); });
  if (!lines.empty()) return lines;
  for (const SavedTensor& tensor : manifest_.tensors) {
    attempt([&] {
      const std::vector<std::byte> bytes = read(tensor);
      if (digest(tensor.name, tensor.dtype, bytes.data(), tensor.shape.numel()) == tensor.digest) return;
      throw Error({.code = ErrorCode::corrupt_file,
                   .message = "the checkpoint is damaged: the digest differs",
                   .name = tensor.name,
                   .path = folder_.string()});
    });
  }
  return lines;
}

}  // namespace trireme::checkpoint
