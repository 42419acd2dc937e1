#pragma once

#include <cstdint>
#include <optional>

#include "trireme/core/collectives.hpp"
#include "trireme/core/export.hpp"
#include "trireme/data/shards/token_shards.hpp"
#include "trireme/files/location.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

struct CutOptions {
  std::int64_t shard_tokens = 50'000'000;                    // see TokenShardWriter
  std::optional<std::uint64_t> shuffle_seed = std::nullopt;  // documents in a random order; nothing: as they are
  int workers = 0;                                           // threads that read documents; 0: all of this rank
};

struct CutReport {
  std::int64_t shards = 0;
  std::int64_t shards_found = 0;  // of an earlier start, which were not made again
};

// Writes the documents once more, as PREFIX-00000.safetensors and so on. The shards are the same for any number of workers and
// ranks, byte for byte, and each is there whole or not at all. One start after another that was killed makes those that are
// missing; shards of other documents or options throw Error{invalid_argument}.
//
// `ranks`: share the shards; each has one in memory. Collective.
CutReport cut_shards(const TokenShards& documents, const Location& prefix, const CutOptions& options = {},
                     const Collectives* ranks = nullptr);

struct SplitShardsOptions {
  double fraction = 0.01;  // of the documents, that are held out
  std::uint64_t seed = 1;
  std::int64_t shard_tokens = 50'000'000;
  int workers = 0;  // threads that read documents; 0: all of this rank
};

struct SplitShardsReport {
  std::int64_t training_documents = 0, training_tokens = 0;
  std::int64_t held_out_documents = 0, held_out_tokens = 0;
  std::int64_t shards = 0;        // of both sides
  std::int64_t shards_found = 0;  // likewise, of an earlier start
};

// Writes each document to PREFIX-training-00000.safetensors and so on, or to PREFIX-held-out-00000.safetensors and so on, in
// the way of cut_shards(). On which side it comes follows from its tokens and the seed: the same documents in other shards are
// split alike, and equal ones lie on one side. A start after another that was killed reads all documents once, to know their
// sides, and makes the shards that are missing. A fraction that leaves a side empty throws Error{invalid_argument}.
SplitShardsReport split_shards(const TokenShards& documents, const Location& prefix, const SplitShardsOptions& options = {},
                               const Collectives* ranks = nullptr);

}  // namespace data
}  // namespace trireme
