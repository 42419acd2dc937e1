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

// Documents as tokens, in safetensors files that need not fit into memory. trireme-data tokenize writes them, and any program
// can write them:
//
//   safetensors.numpy.save_file(
//       {"tokens": tokens,              # [n] uint16 or uint32: the documents, one after the other
//        "document_ends": ends,         # [documents] int64: the end of each document in `tokens`, ascending; the last is n
//        "document_sources": sources},  # [documents] int32: the source of each document; may be left out
//       "train-00000.safetensors", metadata={"format": "trireme.tokens"})
//
//   const data::TokenShards shards(data::locations_of("train-{00000..00015}.safetensors"));
//   std::vector<std::int32_t> tokens(shards.length_of(7));
//   shards.read(7, 0, tokens);
//
// Opening reads no tokens and no document ends; files of this machine are mapped into memory, other files are read in parts.
// Copies are cheap: they share the files. The functions may be called from several threads.
class TokenShards {
 public:
  // Throws Error{invalid_argument} if there are no files, and Error{corrupt_file} for a file that is not such a shard.
  explicit TokenShards(const std::vector<Location>& files);

  std::int64_t size() const noexcept { return num_documents_; }  // documents
  std::int64_t num_tokens() const noexcept { return num_tokens_; }
  std::int64_t num_shards() const noexcept { return std::ssize(shards_); }
  bool reads_by_requests() const noexcept { return reads_by_requests_; }  // whether read() may have to ask a server
  const Location& file_of(std::int64_t document) const;
  std::int64_t number_in_file(std::int64_t document) const;  // from 0

  // The number of a document's tokens. Throws Error{corrupt_file} if ends do not ascend.
  std::int64_t length_of(std::int64_t document) const;
  // The lengths of the documents [first, first + into.size()), with one read per shard.
  void read_lengths(std::int64_t first, std::span<std::int64_t> into) const;
  std::int32_t source_of(std::int64_t document) const;  // 0 if the shard names no sources
  bool has_sources() const noexcept;                    // whether a shard names sources
  // Copies the document's tokens [begin, begin + into.size()). Throws Error if some of them do not exist.
  void read(std::int64_t document, std::int64_t begin, std::span<std::int32_t> into) const;
  std::vector<std::int32_t> at(std::int64_t document) const;  // all tokens of a document

  // A text that identifies the content. It uses the "digest" in each shard's metadata. Without one, a file of this machine is
  // read; of a file elsewhere it uses the size and the version that its server states (content_or_version_at()).
  std::string content() const;

  // The metadata that all files agree on: only keys that all files have, with equal values.
  const SafetensorsMetadata& metadata() const noexcept { return metadata_; }

  // The largest of all tokens. Reads only the tokens of shards without "largest_token" in their metadata.
  std::int64_t largest_token() const;

  // Throws Error{corrupt_file} if a token is not below `size`. Reads only the tokens of shards without "largest_token" in their
  // metadata; write_token_shard() writes this entry.
  void check_vocabulary(std::int64_t size) const;

  // Checks more than opening does: that all ends are right, that no document is empty, and that no token is above `largest`
  // (if given). If write_token_shard() wrote the largest token and the digest into the metadata, compares both with the
  // content. Throws Error{corrupt_file} for the first fault, with the file and the document's place in it.
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
  bool reads_by_requests_ = false;
  SafetensorsMetadata metadata_;
};

// Writes documents as a shard; the tokens are uint16 if `largest_token`, the tokenizer's largest token, allows it. The
// documents lie one after the other in `tokens`; `ends` has the end of each document. `sources` may be empty. The metadata get
// the format, the largest token and a digest of the content. An existing file is replaced only when the new file is complete
// on the disk. Throws Error for empty documents, ends that do not match the tokens, and tokens outside of [0, largest_token].
void write_token_shard(const Location& file, std::span<const std::int32_t> tokens, std::span<const std::int64_t> ends,
                       std::span<const std::int32_t> sources, std::int32_t largest_token, SafetensorsMetadata metadata = {});

inline std::string content_of(const TokenShards& shards) { return shards.content(); }

}  // namespace data
}  // namespace trireme
