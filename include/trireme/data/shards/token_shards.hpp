#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trireme/core/dtype.hpp"
#include "trireme/core/export.hpp"
#include "trireme/files/location.hpp"
#include "trireme/files/safetensors.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// Documents as tokens, in safetensors files that need not fit memory. trireme-data tokenize writes them, and any program can:
//
//   safetensors.numpy.save_file({"tokens": tokens,            # [n] uint16 or uint32: the documents, one after the other
//                                "document_ends": ends,       # [documents] int64: where each ends in `tokens`, ascending, the
//                                last n "document_sources": sources}, # [documents] int32: where each comes from; may be left
//                                out
//                               "train-00000.safetensors", metadata={"format": "trireme.tokens"})
//
//   const data::TokenShards shards(data::locations_of("train-{00000..00015}.safetensors"));
//   std::vector<std::int32_t> tokens(shards.length_of(7));
//   shards.read(7, 0, tokens);
//
// Opening reads no token and no document's end; files of this machine are mapped into memory, others are read in parts. A
// value: copies share the files. Its functions may be called from several threads.
class TokenShards {
 public:
  // No file throws Error{invalid_argument}, a file that is no such shard Error{corrupt_file}.
  explicit TokenShards(const std::vector<Location>& files);

  std::int64_t size() const noexcept { return num_documents_; }  // documents
  std::int64_t num_tokens() const noexcept { return num_tokens_; }
  std::int64_t num_shards() const noexcept { return std::ssize(shards_); }
  const Location& file_of(std::int64_t document) const;
  std::int64_t number_in_file(std::int64_t document) const;  // from 0

  // A document's tokens. Ends that do not ascend throw Error{corrupt_file}.
  std::int64_t length_of(std::int64_t document) const;
  // Of the documents [first, first + into.size()), in one read for each shard.
  void read_lengths(std::int64_t first, std::span<std::int64_t> into) const;
  std::int32_t source_of(std::int64_t document) const;  // 0 where the shard names no sources
  bool has_sources() const noexcept;                    // whether a shard names them
  // The document's tokens [begin, begin + into.size()). Those that are not there throw Error.
  void read(std::int64_t document, std::int64_t begin, std::span<std::int32_t> into) const;
  std::vector<std::int32_t> at(std::int64_t document) const;  // all of them

  // What it reads, in words that differ where the content does. Of a shard whose metadata has a "digest" that is this, of
  // others one is computed of all bytes.
  std::string content() const;

  // The metadata that all files agree on: a key of which two files have different values, or one has none, is not there.
  const SafetensorsMetadata& metadata() const noexcept { return metadata_; }

  // Of all tokens. Reads those of shards alone whose metadata do not have the "largest_token".
  std::int64_t largest_token() const;

  // Throws Error{corrupt_file} where a token is not below `size`. Reads the tokens of shards alone whose metadata do not have
  // the "largest_token", as those of write_token_shard() do.
  void check_vocabulary(std::int64_t size) const;

  // Checks what opening does not: all ends, that no document is empty, that no token is above `largest`, where it is given, and
  // that the largest token and the digest are those of the metadata, if write_token_shard() made these. Throws
  // Error{corrupt_file} for the first fault, with the file and the document's place in it.
  void verify(std::optional<std::int64_t> largest = std::nullopt) const;

 private:
  class Shard;
  struct Place {
    const Shard* shard;
    std::int64_t document;  // in the shard
  };
  Place place_of(std::int64_t document) const;

  std::vector<std::shared_ptr<const Shard>> shards_;
  std::vector<std::int64_t> ends_;  // of each shard, in documents
  std::int64_t num_documents_ = 0;
  std::int64_t num_tokens_ = 0;
  SafetensorsMetadata metadata_;
};

// Writes documents as a shard, uint16 where `largest_token`, the tokenizer's, allows it: the documents lie one after the other
// in `tokens`, `ends` has the end of each. `sources` may be empty. The metadata get the format, the largest
// token and a digest of the content.
// What was there is replaced only when all is on the disk. Empty documents, ends that are not the tokens' and tokens out of [0,
// largest_token] throw Error.
void write_token_shard(const Location& file, std::span<const std::int32_t> tokens, std::span<const std::int64_t> ends,
                       std::span<const std::int32_t> sources, std::int32_t largest_token, SafetensorsMetadata metadata = {});

inline std::string content_of(const TokenShards& shards) { return shards.content(); }

}  // namespace data
}  // namespace trireme
