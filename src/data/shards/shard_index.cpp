#include "data/shards/shard_index.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "trireme/core/error.hpp"
#include "trireme/core/log.hpp"
#include "trireme/core/parse_number.hpp"
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
  const auto count = static_cast<std::size_t>(std::min(piece, shard.size()));
  std::uint64_t sum = shard.size();
  for (const std::uint64_t begin : {std::uint64_t{0}, shard.size() - count}) {
    const auto memory = shard.range(begin, count);
    sum = 31 * sum + digest_of_bytes({memory.get(), count});
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
    index.count = parse_number<std::int64_t>(count->second).value_or(-1);
    const bool fits = stored.metadata() == index_metadata(kind, digest, index.count) && index.count >= 0 &&
                      !index.offsets.empty() && index.offsets.front() >= 0 && std::ranges::is_sorted(index.offsets) &&
                      std::cmp_less_equal(index.offsets.back(), file.size());
    return fits ? std::optional(std::move(index)) : std::nullopt;
  } catch (const Error& error) {
    log(Severity::warning, "the index of {} is not used: {}", shard, error.what());
    return std::nullopt;
  }
}

void write_index(const Location& shard, const ShardIndex& index, std::string_view kind, std::uint64_t digest) {
  const TensorRef offsets{
      .name = "offsets", .dtype = DType::int64, .shape = Shape{std::ssize(index.offsets)}, .data = index.offsets.data()};
  write_safetensors(index_of(shard), {&offsets, 1}, index_metadata(kind, digest, index.count));
}

}  // namespace trireme::data
