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

// Elements that lie together in a part's bytes and in memory.
struct CopyRun {
  std::int64_t in_part = 0;  // the first one, of the part's elements
  std::int64_t first = 0;    // the same, of the whole tensor's
  std::int64_t count = 0;
  std::byte* to = nullptr;
  bool digested = false;  // the copy's digest is compared, which says more than the file's checksum
};

// What a part holds of the elements that are wanted here; ascending by place in the part.
std::vector<CopyRun> copies_of(const TensorPart& part, DType dtype, const std::vector<StatePiece>& wanted);

// One part in a file, read by chunks whose checksums are compared: Error{corrupt_file} says where they differ. Threads may
// share it, each with a buffer of its own.
class PartReader {
 public:
  PartReader(const InputFile& file, const Location& path, const SavedTensor& tensor, const TensorPart& part,
             std::int64_t chunk_bytes);

  const TensorPart& part() const { return part_; }
  std::size_t num_chunks() const { return part_.checksums.size(); }
  std::size_t size_of_chunk(std::size_t chunk) const { return std::min(chunk_bytes_, bytes_ - chunk * chunk_bytes_); }

  void check(std::size_t chunk, std::vector<std::byte>& buffer) const;

  // Of ascending copies: those that overlap each chunk they need.
  void visit_chunks(std::span<const CopyRun> copies,
                    const std::function<void(std::size_t chunk, std::span<const CopyRun> overlapping)>& visit) const;
  // What of the copies lies in the chunk. Gives the digest of those that are digested; without others it needs no checksum.
  std::uint64_t copy(std::size_t chunk, std::span<const CopyRun> overlapping, std::vector<std::byte>& buffer) const;
  void copy(std::span<const CopyRun> copies) const;

 private:
  void compare_checksum(std::size_t chunk, std::uint32_t checksum) const;
  std::byte* place_in(const CopyRun& run, std::int64_t element) const;  // element: of the part

  const InputFile& file_;
  const Location& path_;
  const SavedTensor& tensor_;
  const TensorPart& part_;
  std::size_t element_bytes_;
  std::size_t chunk_bytes_;
  std::size_t bytes_;  // of the part
};

}  // namespace trireme::checkpoint
