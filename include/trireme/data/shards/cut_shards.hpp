#pragma once

#include <cstdint>
#include <optional>

#include "trireme/core/export.hpp"
#include "trireme/data/shards/token_shards.hpp"
#include "trireme/files/location.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

struct CutOptions {
  std::int64_t shard_tokens = 50'000'000;                    // see TokenShardWriter
  std::optional<std::uint64_t> shuffle_seed = std::nullopt;  // documents in a random order; nothing: in their own order
};

// Copies the documents to new shards PREFIX-00000.safetensors and so on, and returns the number of shards. Throws
// Error{invalid_argument} if shards of this prefix exist already.
std::int64_t cut_shards(const TokenShards& documents, const Location& prefix, const CutOptions& options = {});

struct SplitShardsOptions {
  double fraction = 0.01;  // share of the documents that are held out
  std::uint64_t seed = 1;
  std::int64_t shard_tokens = 50'000'000;
};

struct SplitShardsReport {
  std::int64_t training_documents = 0, training_tokens = 0;
  std::int64_t held_out_documents = 0, held_out_tokens = 0;
};

// Writes each document to PREFIX-training-00000.safetensors and so on, or to PREFIX-held-out-00000.safetensors and so on. The
// side of a document depends only on its tokens and the seed. So the same documents in other shards are split in the same way,
// and equal documents lie on the same side. Throws Error{invalid_argument} for a fraction that leaves a side empty, and if
// such shards exist already.
SplitShardsReport split_shards(const TokenShards& documents, const Location& prefix, const SplitShardsOptions& options = {});

}  // namespace data
}  // namespace trireme
