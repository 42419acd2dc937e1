#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "trireme/checkpoint/manifest.hpp"
#include "trireme/core/state.hpp"
#include "trireme/files/file_system.hpp"

namespace trireme::checkpoint {

// Elements that are contiguous both in a part of a file and in memory.
struct CopyRun {
  std::int64_t in_part = 0;  // index of the first element in the part
  std::int64_t first = 0;    // index of the first element in the whole tensor
  std::int64_t count = 0;
  std::byte* to = nullptr;
  bool digested = false;  // the copy is digested; comparing the digest replaces the file's checksum
};

// The wanted elements that a part holds, ascending by place in the part.
std::vector<CopyRun> copies_of(const TensorPart& part, DType dtype, const std::vector<StatePiece>& wanted);

// Reads a part from a file by chunks and compares their checksums; throws Error{corrupt_file} with the place where one differs.
// Threads may share it, each with its own buffer.
class PartReader {
 public:
  PartReader(const InputFile& file, const Location& path, const SavedTensor& tensor, const TensorPart& part,
             std::int64_t chunk_bytes);

  const TensorPart& part() const { return part_; }
  std::size_t num_chunks() const { return part_.checksums.size(); }
  std::size_t size_of_chunk(std::size_t chunk) const { return std::min(chunk_bytes_, bytes_ - chunk * chunk_bytes_); }

  void check(std::size_t chunk, std::vector<std::byte>& buffer) const;

  // Calls visit() for each chunk that the ascending copies need, with the copies that overlap it.
  void visit_chunks(std::span<const CopyRun> copies,
                    const std::function<void(std::size_t chunk, std::span<const CopyRun> overlapping)>& visit) const;
  // Copies what lies in the chunk. Returns the digest of the digested copies. Compares the checksum unless all are digested.
  std::uint64_t copy(std::size_t chunk, std::span<const CopyRun> overlapping, std::vector<std::byte>& buffer) const;
  void copy(std::span<const CopyRun> copies) const;

 private:
  void compare_checksum(std::size_t chunk, std::uint32_t checksum) const;
  std::byte* place_in(const CopyRun& run, std::int64_t element) const;  // element: index in the part

  const InputFile& file_;
  const Location& path_;
  const SavedTensor& tensor_;
  const TensorPart& part_;
  std::size_t element_bytes_;
  std::size_t chunk_bytes_;
  std::size_t bytes_;  // of the part
};

}  // namespace trireme::checkpoint
