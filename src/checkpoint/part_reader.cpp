#include "checkpoint/part_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "trireme/core/crc32c.hpp"
#include "trireme/core/error.hpp"

namespace trireme::checkpoint {

std::vector<CopyRun> copies_of(const TensorPart& part, DType dtype, const std::vector<StatePiece>& wanted) {
  std::vector<CopyRun> copies;
  const auto element_bytes = static_cast<std::int64_t>(size_of(dtype));
  const std::vector<Range> held = ranges_of(part.runs);
  std::int64_t in_part = 0;  // elements of the part before *range
  auto range = held.begin();
  for (const StatePiece& piece : wanted) {
    while (range != held.end() && range->end <= piece.elements.begin) in_part += (range++)->count();
    std::int64_t before = in_part;
    for (auto at = range; at != held.end() && at->begin < piece.elements.end; before += (at++)->count()) {
      const std::int64_t begin = std::max(at->begin, piece.elements.begin);
      const std::int64_t end = std::min(at->end, piece.elements.end);
      copies.push_back({.in_part = before + begin - at->begin,
                        .count = end - begin,
                        .to = static_cast<std::byte*>(piece.data) + (begin - piece.elements.begin) * element_bytes});
    }
  }
  return copies;
}

PartReader::PartReader(const InputFile& file, const std::filesystem::path& path, const SavedTensor& tensor,
                       const TensorPart& part, std::int64_t chunk_bytes)
    : file_(file),
      path_(path),
      tensor_(tensor),
      part_(part),
      element_bytes_(size_of(tensor.dtype)),
      chunk_bytes_(static_cast<std::size_t>(chunk_bytes)),
      bytes_(static_cast<std::size_t>(numel_of(part.runs)) * element_bytes_),
      buffer_(std::min(chunk_bytes_, bytes_)) {}

std::span<const std::byte> PartReader::read_chunk(std::size_t chunk) {
  const std::size_t begin = chunk * chunk_bytes_;
  const auto bytes = std::span(buffer_).first(std::min(chunk_bytes_, bytes_ - begin));
  file_.read_at(bytes, part_.offset + begin);
  if (crc32c(bytes) != part_.checksums[chunk]) {
    throw Error({.code = ErrorCode::corrupt_file,
                 .message = fmt::format("the checkpoint is damaged: {} bytes from {} on do not fit their checksum",
                                        bytes.size(), part_.offset + begin),
                 .name = tensor_.name,
                 .path = path_.string(),
                 .hint = "resume from another step"});
  }
  return bytes;
}

void PartReader::visit_chunks(const std::vector<CopyRun>& copies,
                              const std::function<void(std::size_t chunk, std::span<const CopyRun> overlapping)>& visit) const {
  const auto chunk_elements = static_cast<std::int64_t>(chunk_bytes_ / element_bytes_);
  std::size_t next = 0;  // chunks before it are done
  for (std::size_t index = 0; index < copies.size(); ++index) {
    const auto first = static_cast<std::size_t>(copies[index].in_part / chunk_elements);
    const auto last = static_cast<std::size_t>((copies[index].in_part + copies[index].count - 1) / chunk_elements);
    for (std::size_t chunk = std::max(next, first); chunk <= last; ++chunk) {
      const std::int64_t end = static_cast<std::int64_t>(chunk + 1) * chunk_elements;
      std::size_t after = index;
      while (after < copies.size() && copies[after].in_part < end) ++after;
      visit(chunk, std::span(copies).subspan(index, after - index));
      next = chunk + 1;
    }
  }
}

void PartReader::check(const std::vector<CopyRun>& copies) {
  visit_chunks(copies, [&](std::size_t chunk, std::span<const CopyRun>) { read_chunk(chunk); });
}

void PartReader::copy(const std::vector<CopyRun>& copies) {
  visit_chunks(copies, [&](std::size_t chunk, std::span<const CopyRun> overlapping) {
    const auto bytes = read_chunk(chunk);
    const auto chunk_begin = static_cast<std::int64_t>(chunk * chunk_bytes_ / element_bytes_);
    const auto chunk_end = chunk_begin + static_cast<std::int64_t>(bytes.size() / element_bytes_);
    for (const CopyRun& run : overlapping) {
      const std::int64_t begin = std::max(run.in_part, chunk_begin);
      const std::int64_t end = std::min(run.in_part + run.count, chunk_end);
      if (begin >= end) continue;
      std::memcpy(run.to + static_cast<std::size_t>(begin - run.in_part) * element_bytes_,
                  bytes.data() + static_cast<std::size_t>(begin - chunk_begin) * element_bytes_,
                  static_cast<std::size_t>(end - begin) * element_bytes_);
    }
  });
}

}  // namespace trireme::checkpoint
