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
  std::int64_t shard_tokens = 50'000'000;  // a shard has no more, but for a single document that has
  std::int32_t largest_token = 0;          // of the tokenizer: it decides between uint16 and uint32
  bool has_sources = true;
  SafetensorsMetadata metadata = {};  // of each shard
  std::int64_t first_shard = 0;       // the number of the first that is written
};

// Writes documents as shards PREFIX-00000.safetensors, PREFIX-00001.safetensors and so on. A shard is there whole or not at
// all.
//
//   data::TokenShardWriter writer("tokens/train", {.largest_token = tokenizer.vocabulary_size() - 1});
//   for (const std::string& text : texts) writer.add(tokenizer.encode(text));
//   writer.end_shard();  // the last one
class TokenShardWriter {
 public:
  // Fewer tokens of a shard than 1, and a number of the first below 0, throw Error.
  TokenShardWriter(Location prefix, TokenShardWriterOptions options);

  // Ends a shard that has no room for the document. A document without tokens, and tokens that are not in [0, largest_token],
  // throw Error.
  void add(std::span<const std::int32_t> document, std::int32_t source = 0);
  bool has_room(std::int64_t tokens) const noexcept;  // false: a document of so many would begin another shard

  // Writes what was added since the last shard; of nothing, nothing. `more` is for its metadata.
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
std::vector<std::int64_t> numbers_of_token_shards(const Location& prefix);  // that are there, ascending

// The same. Throws Error{invalid_argument} for a shard whose metadata has not all of these: it is of something else.
std::vector<std::int64_t> earlier_token_shards(const Location& prefix, const SafetensorsMetadata& wanted);

// Makes the folder of the shards. Throws Error for a prefix that names nothing in it.
void prepare_token_shards(const Location& prefix);

// What writers that were killed have left half done. For a prefix that nobody writes to.
void remove_unfinished_token_shards(const Location& prefix);

}  // namespace data
}  // namespace trireme
