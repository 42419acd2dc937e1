#include "data/shards/shard_index.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "trireme/core/error.hpp"
#include "trireme/core/log.hpp"
#include "trireme/core/parse_number.hpp"
#include "trireme/data/sources/dataset.hpp"
#include "trireme/files/file_content.hpp"
#include "trireme/files/file_system.hpp"
#include "trireme/files/safetensors.hpp"

namespace trireme::data {
namespace {

constexpr const char* index_format = "trireme index 1";

SafetensorsMetadata index_metadata(std::string_view kind, std::uint64_t digest, std::int64_t count) {
  return {{"format", index_format},
          {"kind", std::string(kind)},
          {"digest", fmt::format("{:016x}", digest)},
          {"count", fmt::format("{}", count)}};
}

}  // namespace

std::uint64_t digest_of_ends(const RangedFile& shard) {
  constexpr std::uint64_t piece = 1 << 16;
  std::vector<std::byte> bytes(static_cast<std::size_t>(std::min(piece, shard.size())));
  std::uint64_t sum = shard.size();
  for (const std::uint64_t begin : {std::uint64_t{0}, shard.size() - bytes.size()}) {
    shard.read_at(bytes, begin);
    sum = 31 * sum + digest_of_bytes(bytes);
  }
  return sum;
}

Location index_of(const Location& shard) { return shard.beside(".index"); }

std::optional<ShardIndex> read_index(const Location& shard, const RangedFile& file, std::string_view kind,
                                     std::uint64_t digest) {
  const Location location = index_of(shard);
  if (!is_there(location)) return std::nullopt;
  try {
    const SafetensorsFile stored(location);
    const auto count = stored.metadata().find("count");
    if (count == stored.metadata().end()) return std::nullopt;
    ShardIndex index{.offsets = stored.read_values<std::int64_t>("offsets")};
    if (stored.find("learnt") != nullptr) {
      const std::vector<std::byte> learnt = stored.read_bytes("learnt");
      index.learnt.assign(reinterpret_cast<const char*>(learnt.data()), learnt.size());
    }
    index.count = parse_number<std::int64_t>(count->second).value_or(-1);
    const bool fits = stored.metadata() == index_metadata(kind, digest, index.count) && index.count >= 0 &&
                      std::cmp_less_equal(index.count, file.size()) && !index.offsets.empty() && index.offsets.front() >= 0 &&
                      std::ranges::is_sorted(index.offsets) && std::cmp_less_equal(index.offsets.back(), file.size());
    return fits ? std::optional(std::move(index)) : std::nullopt;
  } catch (const Error& error) {
    log(Severity::warning, "the index of {} is not used: {}", shard, error.what());
    return std::nullopt;
  }
}

void write_index(const Location& shard, const ShardIndex& index, std::string_view kind, std::uint64_t digest) {
  std::vector<TensorRef> tensors{
      {.name = "offsets", .dtype = DType::int64, .shape = Shape{std::ssize(index.offsets)}, .data = index.offsets.data()}};
  if (!index.learnt.empty()) {
    tensors.push_back(
        {.name = "learnt", .dtype = DType::uint8, .shape = Shape{std::ssize(index.learnt)}, .data = index.learnt.data()});
  }
  write_safetensors(index_of(shard), tensors, index_metadata(kind, digest, index.count));
}

void refuse_other_shard(const Location& shard, std::uint64_t byte) {
  throw Error({.code = ErrorCode::corrupt_file,
               .message = fmt::format("byte {}: the file is not the one that was looked through", byte),
               .path = shard.string(),
               .hint = fmt::format("files may not change while they are read; remove {} if it is there, and begin again",
                                   index_of(shard))});
}

IndexedShards::IndexedShards(std::vector<Location> locations, int workers, std::string kind_of_index,
                             const std::function<bool(const ShardIndex&)>& fits, const LookThrough& look_through)
    : files(std::move(locations)), kind(std::move(kind_of_index)), shards(files.locations().size()) {
  require(!shards.empty(), "no files are named");
  for_each_item(std::ssize(shards), workers, [&](std::int64_t number) {
    const auto at = static_cast<std::size_t>(number);
    const Location& location = files.locations()[at];
    const std::shared_ptr<const RangedFile> file = files.open(at);
    IndexedShard& shard = shards[at];
    shard.digest = digest_of_ends(*file);
    std::optional<ShardIndex> stored = read_index(location, *file, kind, shard.digest);
    shard.is_stored = stored && fits(*stored);
    shard.index = shard.is_stored ? *std::move(stored) : look_through(*file, location);
  });
  for (const IndexedShard& shard : shards) first.push_back(first.back() + shard.index.count);
}

IndexedShards::Place IndexedShards::place_of(std::int64_t sample) const {
  require(sample >= 0 && sample < size(), "sample {} does not exist among {}", sample, size());
  const auto shard = static_cast<std::size_t>(std::ranges::upper_bound(first, sample) - first.begin() - 1);
  return {.shard = shard, .place = sample - first[shard]};
}

void IndexedShards::write_index() const {
  for (std::size_t shard = 0; shard < shards.size(); ++shard) {
    const IndexedShard& one = shards[shard];
    if (!one.is_stored) data::write_index(files.locations()[shard], one.index, kind, one.digest);
  }
}

std::uint64_t IndexedShards::digest() const {
  std::uint64_t sum = 0;
  for (const IndexedShard& shard : shards) {
    sum = 31 * sum + shard.digest;
    sum = 31 * sum + digest_of_bytes(std::as_bytes(std::span(shard.index.offsets)));
  }
  return sum;
}

}  // namespace trireme::data
