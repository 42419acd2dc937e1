#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/plan.hpp"
#include "trireme/core/state.hpp"
#include "trireme/files/file_system.hpp"

namespace trireme::checkpoint {

// The parts that one rank writes, in the order of its file.
struct Shard {
  struct Part {
    std::string name;
    DType dtype = DType::float32;
    Shape shape;  // of the whole tensor
    std::vector<StatePiece> pieces;
  };
  std::vector<Part> parts;
};

Shard shard_of(const Plan& plan, const State& state, int rank);

// Copies the elements to `memory`, so that the state may change while the shard is written.
void own(Shard& shard, std::vector<std::byte>& memory);

// What the manifest needs to know about a written shard.
struct ShardReport {
  std::string name;
  std::uint64_t header_bytes = 0;
  std::uint32_t header_checksum = 0;
  std::vector<std::vector<std::uint32_t>> checksums;  // for each part, of its chunks
  std::vector<std::uint64_t> digests;                 // of each part
};
std::string to_text(const ShardReport& report);
ShardReport parse_report(std::string_view text);

// Writes the file in chunks and syncs it. Checksums are computed from memory.
ShardReport write_shard(FileSystem& files, const Location& path, const Shard& shard, std::int64_t chunk_bytes);

}  // namespace trireme::checkpoint
