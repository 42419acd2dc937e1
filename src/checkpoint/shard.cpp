#include "checkpoint/shard.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "checkpoint/json.hpp"
#include "trireme/files/crc32c.hpp"
#include "trireme/files/digest.hpp"
#include "trireme/files/safetensors.hpp"

namespace trireme::checkpoint {
namespace {

std::int64_t elements_of(const Shard::Part& part) {
  std::int64_t count = 0;
  for (const StatePiece& piece : part.pieces) count += piece.elements.count();
  return count;
}

// In the file, a whole tensor has its shape; a part is one-dimensional.
TensorRef reference_to(const Shard::Part& part) {
  const std::int64_t count = elements_of(part);
  return {.name = part.name, .dtype = part.dtype, .shape = count == part.shape.numel() ? part.shape : Shape{count}};
}

// Collects bytes and writes them in chunks.
class ChunkWriter {
 public:
  ChunkWriter(OutputFile& file, std::int64_t chunk_bytes) : file_(file), chunk_(static_cast<std::size_t>(chunk_bytes)) {}

  void add(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      if (filled_ == 0 && bytes.size() >= chunk_.size()) {
        write(bytes.first(chunk_.size()));
        bytes = bytes.subspan(chunk_.size());
        continue;
      }
      const std::size_t count = std::min(bytes.size(), chunk_.size() - filled_);
      std::memcpy(chunk_.data() + filled_, bytes.data(), count);
      filled_ += count;
      bytes = bytes.subspan(count);
      if (filled_ == chunk_.size()) flush();
    }
  }

  std::vector<std::uint32_t> end_part() {
    if (filled_ > 0) flush();
    return std::exchange(checksums_, {});
  }

 private:
  void flush() { write(std::span<const std::byte>(chunk_).first(std::exchange(filled_, 0))); }

  void write(std::span<const std::byte> chunk) {
    checksums_.push_back(crc32c(chunk));
    file_.write(chunk);
  }

  OutputFile& file_;
  std::vector<std::byte> chunk_;
  std::size_t filled_ = 0;
  std::vector<std::uint32_t> checksums_;
};

std::span<const std::byte> bytes_of(const StatePiece& piece, DType dtype) {
  return {static_cast<const std::byte*>(piece.data), static_cast<std::size_t>(piece.elements.count()) * size_of(dtype)};
}

}  // namespace

Shard shard_of(const Plan& plan, const State& state, int rank) {
  std::map<std::string_view, const StateTensor*> by_name;
  for (const StateTensor& tensor : state.tensors()) by_name[tensor.name] = &tensor;
  Shard shard;
  for (const Plan::Place& place : plan.places_of(rank)) {
    const PlannedTensor& tensor = plan.tensors[place.tensor];
    shard.parts.push_back({.name = tensor.name,
                           .dtype = tensor.dtype,
                           .shape = tensor.shape,
                           .pieces = pieces_of(ranges_of(tensor.parts[place.part].runs), *by_name.at(tensor.name))});
  }
  return shard;
}

void own(Shard& shard, std::vector<std::byte>& memory) {
  std::size_t bytes = 0;
  for (const Shard::Part& part : shard.parts) bytes += static_cast<std::size_t>(elements_of(part)) * size_of(part.dtype);
  if (memory.size() < bytes) {
    memory = std::vector<std::byte>();
    memory.resize(bytes);
  }
  std::byte* to = memory.data();
  for (Shard::Part& part : shard.parts) {
    for (StatePiece& piece : part.pieces) {
      const auto from = bytes_of(piece, part.dtype);
      if (from.empty()) continue;
      std::memcpy(to, from.data(), from.size());
      piece.data = to;
      to += from.size();
    }
  }
}

ShardReport write_shard(FileSystem& files, const Location& path, const Shard& shard, std::int64_t chunk_bytes) {
  std::vector<TensorRef> tensors;
  std::uint64_t bytes = 0;
  for (const Shard::Part& part : shard.parts) {
    tensors.push_back(reference_to(part));
    bytes += static_cast<std::uint64_t>(elements_of(part)) * size_of(part.dtype);
  }
  const std::string header = safetensors_header(tensors, {}, path);
  const auto header_bytes = std::as_bytes(std::span(header));
  ShardReport report{.name = path.name(),
                     .header_bytes = header.size(),
                     .header_checksum = crc32c(header_bytes),
                     .checksums = {},
                     .digests = {}};

  const auto file = files.create(path);
  file->reserve(header.size() + bytes);
  file->write(header_bytes);
  ChunkWriter writer(*file, chunk_bytes);
  for (const Shard::Part& part : shard.parts) {
    std::uint64_t sum = 0;
    for (const StatePiece& piece : part.pieces) {
      sum += digest(part.name, part.dtype, piece.data, piece.elements.count(), piece.elements.begin);
      writer.add(bytes_of(piece, part.dtype));
    }
    report.digests.push_back(sum);
    report.checksums.push_back(writer.end_part());
  }
  file->sync();
  file->close();
  return report;
}

std::string to_text(const ShardReport& report) {
  return Json{report.name, report.header_bytes, report.header_checksum, report.checksums, report.digests}.dump();
}

ShardReport parse_report(std::string_view text) {
  const Json json = Json::parse(text);
  return {.name = json[0], .header_bytes = json[1], .header_checksum = json[2], .checksums = json[3], .digests = json[4]};
}

}  // namespace trireme::checkpoint
