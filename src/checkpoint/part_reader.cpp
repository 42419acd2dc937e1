#include "checkpoint/part_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "trireme/core/error.hpp"
#include "trireme/files/crc32c.hpp"
#include "trireme/files/digest.hpp"

namespace trireme::checkpoint {
namespace {

constexpr std::size_t block_bytes = std::size_t{256} << 10;  // read, checked and digested while they are in a core's cache

}  // namespace

std::vector<CopyRun> copies_of(const TensorPart& part, DType dtype, const std::vector<StatePiece>& wanted) {
  std::vector<CopyRun> copies;
  const auto element_bytes = static_cast<std::int64_t>(size_of(dtype));
  const std::vector<Range> held = ranges_of(part.runs);
  std::int64_t in_part = 0;  // number of the part's elements before *range
  auto range = held.begin();
  for (const StatePiece& piece : wanted) {
    while (range != held.end() && range->end <= piece.elements.begin) in_part += (range++)->count();
    std::int64_t before = in_part;
    for (auto at = range; at != held.end() && at->begin < piece.elements.end; before += (at++)->count()) {
      const std::int64_t begin = std::max(at->begin, piece.elements.begin);
      const std::int64_t end = std::min(at->end, piece.elements.end);
      copies.push_back({.in_part = before + begin - at->begin,
                        .first = begin,
                        .count = end - begin,
                        .to = static_cast<std::byte*>(piece.data) + (begin - piece.elements.begin) * element_bytes});
    }
  }
  return copies;
}

PartReader::PartReader(const InputFile& file, const Location& path, const SavedTensor& tensor, const TensorPart& part,
                       std::int64_t chunk_bytes)
    : file_(file),
      path_(path),
      tensor_(tensor),
      part_(part),
      element_bytes_(size_of(tensor.dtype)),
      chunk_bytes_(static_cast<std::size_t>(chunk_bytes)),
      bytes_(static_cast<std::size_t>(numel_of(part.runs)) * element_bytes_) {}

void PartReader::compare_checksum(std::size_t chunk, std::uint32_t checksum) const {
  if (checksum == part_.checksums[chunk]) return;
  throw Error({.code = ErrorCode::corrupt_file,
               .message = fmt::format("the checkpoint is damaged: {} bytes from {} on do not fit their checksum",
                                      size_of_chunk(chunk), part_.offset + chunk * chunk_bytes_),
               .name = tensor_.name,
               .path = path_.string(),
               .hint = "resume from another step"});
}

void PartReader::check(std::size_t chunk, std::vector<std::byte>& buffer) const {
  buffer.resize(block_bytes);
  const std::size_t begin = chunk * chunk_bytes_;
  const std::size_t end = begin + size_of_chunk(chunk);
  std::uint32_t checksum = 0;
  for (std::size_t at = begin; at < end; at += block_bytes) {
    const auto block = std::span(buffer).first(std::min(block_bytes, end - at));
    file_.read_at(block, part_.offset + at);
    checksum = crc32c(block, checksum);
  }
  compare_checksum(chunk, checksum);
}

void PartReader::visit_chunks(std::span<const CopyRun> copies,
                              const std::function<void(std::size_t chunk, std::span<const CopyRun> overlapping)>& visit) const {
  const auto chunk_elements = static_cast<std::int64_t>(chunk_bytes_ / element_bytes_);
  std::size_t next = 0;  // chunks before this one are done
  for (std::size_t index = 0; index < copies.size(); ++index) {
    const auto first = static_cast<std::size_t>(copies[index].in_part / chunk_elements);
    const auto last = static_cast<std::size_t>((copies[index].in_part + copies[index].count - 1) / chunk_elements);
    for (std::size_t chunk = std::max(next, first); chunk <= last; ++chunk) {
      const std::int64_t end = static_cast<std::int64_t>(chunk + 1) * chunk_elements;
      std::size_t after = index;
      while (after < copies.size() && copies[after].in_part < end) ++after;
      visit(chunk, copies.subspan(index, after - index));
      next = chunk + 1;
    }
  }
}

std::byte* PartReader::place_in(const CopyRun& run, std::int64_t element) const {
  return run.to + static_cast<std::size_t>(element - run.in_part) * element_bytes_;
}

std::uint64_t PartReader::copy(std::size_t chunk, std::span<const CopyRun> overlapping, std::vector<std::byte>& buffer) const {
  const bool with_checksum = !std::ranges::all_of(overlapping, &CopyRun::digested);
  const std::size_t begin = chunk * chunk_bytes_;
  const std::size_t end = begin + size_of_chunk(chunk);
  std::uint32_t checksum = 0;
  std::uint64_t sum = 0;
  for (std::size_t at = begin; at < end; at += block_bytes) {
    const std::size_t bytes = std::min(block_bytes, end - at);
    const Range block{static_cast<std::int64_t>(at / element_bytes_), static_cast<std::int64_t>((at + bytes) / element_bytes_)};
    const auto ends_before = [&](const CopyRun& run) { return run.in_part + run.count <= block.begin; };
    while (!overlapping.empty() && ends_before(overlapping.front())) overlapping = overlapping.subspan(1);
    const CopyRun* whole = !overlapping.empty() && overlapping.front().in_part <= block.begin &&
                                   overlapping.front().in_part + overlapping.front().count >= block.end
                               ? &overlapping.front()
                               : nullptr;
    if (whole == nullptr) buffer.resize(block_bytes);
    const std::span into(whole == nullptr ? buffer.data() : place_in(*whole, block.begin), bytes);
    file_.read_at(into, part_.offset + at);
    if (with_checksum) checksum = crc32c(into, checksum);
    for (const CopyRun& run : overlapping) {
      if (run.in_part >= block.end) break;
      const std::int64_t first = std::max(run.in_part, block.begin);
      const std::int64_t last = std::min(run.in_part + run.count, block.end);
      std::byte* const to = place_in(run, first);
      if (whole == nullptr) {
        std::memcpy(to, into.data() + static_cast<std::size_t>(first - block.begin) * element_bytes_,
                    static_cast<std::size_t>(last - first) * element_bytes_);
      }
      if (run.digested) sum += digest(tensor_.name, tensor_.dtype, to, last - first, run.first + first - run.in_part);
    }
  }
  if (with_checksum) compare_checksum(chunk, checksum);
  return sum;
}

void PartReader::copy(std::span<const CopyRun> copies) const {
  std::vector<std::byte> buffer;
  visit_chunks(copies, [&](std::size_t chunk, std::span<const CopyRun> overlapping) { copy(chunk, overlapping, buffer); });
}

}  // namespace trireme::checkpoint
