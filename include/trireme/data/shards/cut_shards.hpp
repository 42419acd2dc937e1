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
  std::optional<std::uint64_t> shuffle_seed = std::nullopt;  // documents in a random order; nothing: as they are
};

// Writes the documents once more, as PREFIX-00000.safetensors and so on, and gives the number of shards. Shards that are there
// already throw Error{invalid_argument}.
std::int64_t cut_shards(const TokenShards& documents, const Location& prefix, const CutOptions& options = {});

struct SplitShardsOptions {
  double fraction = 0.01;  // of the documents, that are held out
  std::uint64_t seed = 1;
  std::int64_t shard_tokens = 50'000'000;
};

struct SplitShardsReport {
  std::int64_t training_documents = 0, training_tokens = 0;
  std::int64_t held_out_documents = 0, held_out_tokens = 0;
};

// Writes each document to PREFIX-training-00000.safetensors and so on, or to PREFIX-held-out-00000.safetensors and so on. On
// which side it comes follows from its tokens and the seed: the same documents in other shards are split alike, and equal ones
// lie on one side. A fraction that leaves a side empty, and shards that are there already, throw Error{invalid_argument}.
SplitShardsReport split_shards(const TokenShards& documents, const Location& prefix, const SplitShardsOptions& options = {});

}  // namespace data
}  // namespace trireme
