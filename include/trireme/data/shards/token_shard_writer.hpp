#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/files/location.hpp"
#include "trireme/files/safetensors.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

struct TokenShardWriterOptions {
  std::int64_t shard_tokens = 50'000'000;  // at most, unless a single document has more
  std::int32_t largest_token = 0;          // of the tokenizer: it decides between uint16 and uint32
  bool has_sources = true;
  SafetensorsMetadata metadata = {};  // of each shard
  std::int64_t first_shard = 0;       // the number of the first shard that is written
};

// Writes documents as shards PREFIX-00000.safetensors, PREFIX-00001.safetensors and so on. A shard exists as a whole or not at
// all.
//
//   data::TokenShardWriter writer("tokens/train", {.largest_token = tokenizer.vocabulary_size() - 1});
//   for (const std::string& text : texts) writer.add(tokenizer.encode(text));
//   writer.end_shard();  // the last one
class TokenShardWriter {
 public:
  // Throws Error if shard_tokens is below 1 or first_shard below 0.
  TokenShardWriter(Location prefix, TokenShardWriterOptions options);

  // Ends a shard that has no room for the document. Throws Error for a document without tokens and for tokens outside of [0,
  // largest_token].
  void add(std::span<const std::int32_t> document, std::int32_t source = 0);
  bool has_room(std::int64_t tokens) const noexcept;  // false: a document of this many tokens would begin another shard

  // Writes the documents that were added after the last shard, if there are any. `more`: further metadata of this shard.
  void end_shard(const SafetensorsMetadata& more = {});

  std::int64_t num_shards() const noexcept { return num_shards_; }  // that are written
  std::int64_t num_documents() const noexcept { return num_documents_; }
  std::int64_t num_tokens() const noexcept { return num_tokens_; }

 private:
  Location prefix_;
  TokenShardWriterOptions options_;
  std::vector<std::int32_t> tokens_;  // of the shard that is being filled
  std::vector<std::int64_t> ends_;
  std::vector<std::int32_t> sources_;
  std::int64_t num_shards_ = 0;
  std::int64_t num_documents_ = 0;
  std::int64_t num_tokens_ = 0;
};

Location token_shard(const Location& prefix, std::int64_t number);          // PREFIX-00007.safetensors
std::vector<std::int64_t> numbers_of_token_shards(const Location& prefix);  // of the existing shards, ascending

// The same list. Throws Error{invalid_argument} for a shard whose metadata lacks some of these entries, since it was made from
// something else.
std::vector<std::int64_t> earlier_token_shards(const Location& prefix, const SafetensorsMetadata& wanted);

// Makes the folder of the shards. Throws Error for a prefix that names no file in a folder.
void prepare_token_shards(const Location& prefix);

// Removes the unfinished shards of writers that were killed. Call it only if nobody writes shards of this prefix.
void remove_unfinished_token_shards(const Location& prefix);

}  // namespace data
}  // namespace trireme
