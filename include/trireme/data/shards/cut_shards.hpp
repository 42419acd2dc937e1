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
  std::optional<std::uint64_t> shuffle_seed = std::nullopt;  // documents in a random order; nothing: in their own order
  int workers = 0;                                           // threads that read documents; 0: all threads of this rank
};

struct CutReport {
  std::int64_t shards = 0;
  std::int64_t shards_found = 0;  // shards that an earlier start had made already
};

// Copies the documents to new shards PREFIX-00000.safetensors and so on. The shards are the same for any number of workers and
// ranks, byte for byte, and each is written as a whole or not at all. After a kill the same call makes only the missing shards.
// Throws Error{invalid_argument} if there are shards of other documents or options.
//
// `ranks`: the ranks that share the shards; each has one shard in memory. Collective.
CutReport cut_shards(const TokenShards& documents, const Location& prefix, const CutOptions& options = {},
                     const Collectives* ranks = nullptr);

struct SplitShardsOptions {
  double fraction = 0.01;  // share of the documents that are held out
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

// Writes each document to PREFIX-training-00000.safetensors and so on, or to PREFIX-held-out-00000.safetensors and so on, as
// cut_shards() does. The side of a document depends only on its tokens and the seed. So the same documents in other shards are
// split in the same way, and equal documents lie on the same side. After a kill the same call reads all documents once, to know
// their sides, and makes only the missing shards. Throws Error{invalid_argument} for a fraction that leaves a side empty.
SplitShardsReport split_shards(const TokenShards& documents, const Location& prefix, const SplitShardsOptions& options = {},
                               const Collectives* ranks = nullptr);

}  // namespace data
}  // namespace trireme
