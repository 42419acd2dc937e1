#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/plan.hpp"
#include "trireme/core/state.hpp"
#include "trireme/files/file_system.hpp"

namespace trireme::checkpoint {

// What one rank writes, in the order of its file.
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

// Copies the elements into the memory, so that the state may change while the shard is written.
void own(Shard& shard, std::vector<std::byte>& memory);

// What the others must know of a written shard.
struct ShardReport {
  std::string name;
  std::uint64_t header_bytes = 0;
  std::uint32_t header_checksum = 0;
  std::vector<std::vector<std::uint32_t>> checksums;  // of each part's chunks
  std::vector<std::uint64_t> digests;                 // of each part
};
std::string to_text(const ShardReport& report);
ShardReport parse_report(std::string_view text);

// Writes the file and brings it to the disk; in chunks, whose checksums are taken from memory.
ShardReport write_shard(FileSystem& files, const Location& path, const Shard& shard, std::int64_t chunk_bytes);

}  // namespace trireme::checkpoint
