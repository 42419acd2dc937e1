#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "data/sources/ranged_file.hpp"
#include "trireme/files/location.hpp"

namespace trireme::data {

// Where the samples of a shard lie, so that it need not be looked through again.
struct ShardIndex {
  std::int64_t count = 0;                  // samples
  std::vector<std::int64_t> offsets = {};  // bytes of the shard, ascending
};

// What tells a shard from another one without reading all of it: a digest of its size, its beginning and its end.
std::uint64_t digest_of_ends(const RangedFile& shard);

// A safetensors file beside the shard, "x.tar.index". `kind` names what is counted. Nothing where there is no file, or one of
// another shard, kind or format.
Location index_of(const Location& shard);
std::optional<ShardIndex> read_index(const Location& shard, const RangedFile& file, std::string_view kind,
                                     std::uint64_t digest);
void write_index(const Location& shard, const ShardIndex& index, std::string_view kind, std::uint64_t digest);

}  // namespace trireme::data
