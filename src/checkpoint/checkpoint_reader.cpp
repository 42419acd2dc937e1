#include "trireme/checkpoint/checkpoint_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "checkpoint/directory.hpp"
#include "checkpoint/part_reader.hpp"
#include "checkpoint/saved_files.hpp"
#include "trireme/core/error.hpp"
#include "trireme/files/digest.hpp"

namespace trireme::checkpoint {

CheckpointReader::CheckpointReader(Location folder, std::shared_ptr<FileSystem> file_system)
    : folder_(std::move(folder)),
      files_(std::move(file_system)),
      manifest_(parse_manifest(files_->open(folder_ / manifest_name)->content(), folder_ / manifest_name)) {}

const SavedTensor* CheckpointReader::find(std::string_view name) const {
  const auto found = std::ranges::lower_bound(manifest_.tensors, name, {}, &SavedTensor::name);
  return found != manifest_.tensors.end() && found->name == name ? &*found : nullptr;
}

std::vector<std::byte> CheckpointReader::read(const SavedTensor& tensor) const {
  std::vector<Location> paths;
  std::vector<std::unique_ptr<InputFile>> inputs;
  for (const TensorPart& part : tensor.parts) {
    const SavedFile& file = manifest_.files[static_cast<std::size_t>(part.file)];
    paths.push_back(folder_ / file.name);
    inputs.push_back(open_saved(*files_, paths.back(), file));
  }
  // Allocates only after all files were found to have the size in the manifest.
  std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.shape.numel()) * size_of(tensor.dtype));
  const std::vector<StatePiece> all{{.data = bytes.data(), .elements = {0, tensor.shape.numel()}}};
  for (std::size_t index = 0; index < tensor.parts.size(); ++index) {
    const TensorPart& part = tensor.parts[index];
    PartReader(*inputs[index], paths[index], tensor, part, manifest_.chunk_bytes).copy(copies_of(part, tensor.dtype, all));
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
  for (const SavedFile& file : manifest_.files) attempt([&] { open_saved(*files_, folder_ / file.name, file); });
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
