#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/sources/ranged_file.hpp"
#include "trireme/files/location.hpp"

namespace trireme::data {

// Where the samples of a shard lie, so that it need not be looked through again.
struct ShardIndex {
  std::int64_t count = 0;                  // samples
  std::vector<std::int64_t> offsets = {};  // bytes of the shard, ascending
  std::string learnt = {};                 // bytes that say what else was found out; empty: nothing
};

// What tells a shard from another one without reading all of it: a digest of its size, its beginning and its end.
std::uint64_t digest_of_ends(const RangedFile& shard);

// A safetensors file beside the shard, "x.tar.index". `kind` names what is counted. Nothing where there is no file, or one of
// another shard, kind or format.
Location index_of(const Location& shard);
std::optional<ShardIndex> read_index(const Location& shard, const RangedFile& file, std::string_view kind,
                                     std::uint64_t digest);
void write_index(const Location& shard, const ShardIndex& index, std::string_view kind, std::uint64_t digest);

// What was found at this byte is not what the index says.
[[noreturn]] void refuse_other_shard(const Location& shard, std::uint64_t byte);

// A shard with its index, read from the index's file or made by `look_through`.
struct IndexedShard {
  ShardIndex index;
  std::uint64_t digest = 0;
  bool is_stored = false;  // the index was read
};

// What a dataset of shards knows of them.
struct IndexedShards {
  using LookThrough = std::function<ShardIndex(const RangedFile&, const Location&)>;

  // `workers` threads look through shards whose index is not stored or does not fit.
  IndexedShards(std::vector<Location> locations, int workers, std::string kind,
                const std::function<bool(const ShardIndex&)>& fits, const LookThrough& look_through);

  // The shard of a sample, which has to be there, and the sample's place in it.
  struct Place {
    std::size_t shard;
    std::int64_t place;
  };
  Place place_of(std::int64_t sample) const;

  std::int64_t size() const { return first.back(); }
  void write_index() const;  // of each shard that has none that was read
  std::uint64_t digest() const;

  OpenFiles files;
  std::string kind;
  std::vector<IndexedShard> shards;
  std::vector<std::int64_t> first{0};  // sample of each shard, and how many there are
};

}  // namespace trireme::data
