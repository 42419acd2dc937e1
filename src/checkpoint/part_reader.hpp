#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "trireme/checkpoint/manifest.hpp"
#include "trireme/core/file_system.hpp"
#include "trireme/core/state.hpp"

namespace trireme::checkpoint {

// Elements that lie together in a part's bytes and in memory.
struct CopyRun {
  std::int64_t in_part = 0;  // the first one, of the part's elements
  std::int64_t count = 0;
  std::byte* to = nullptr;
};

// What a part holds of the elements that are wanted here; ascending by place in the part.
std::vector<CopyRun> copies_of(const TensorPart& part, DType dtype, const std::vector<StatePiece>& wanted);

// One part in a file, read by chunks whose checksums are compared: Error{corrupt_file} says where they differ.
class PartReader {
 public:
  PartReader(const InputFile& file, const std::filesystem::path& path, const SavedTensor& tensor, const TensorPart& part,
             std::int64_t chunk_bytes);

  void check(const std::vector<CopyRun>& copies);  // the chunks they need
  void copy(const std::vector<CopyRun>& copies);

 private:
  std::span<const std::byte> read_chunk(std::size_t chunk);
  void visit_chunks(const std::vector<CopyRun>& copies,
                    const std::function<void(std::size_t chunk, std::span<const CopyRun> overlapping)>& visit) const;

  const InputFile& file_;
  const std::filesystem::path& path_;
  const SavedTensor& tensor_;
  const TensorPart& part_;
  std::size_t element_bytes_;
  std::size_t chunk_bytes_;
  std::size_t bytes_;  // of the part
  std::vector<std::byte> buffer_;
};

}  // namespace trireme::checkpoint
