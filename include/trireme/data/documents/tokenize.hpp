#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "trireme/core/collectives.hpp"
#include "trireme/core/export.hpp"
#include "trireme/files/location.hpp"
#include "trireme/tokenizers/codecs/tokenizer.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

struct TokenizeReport {
  std::int64_t shards = 0;
  std::int64_t documents = 0;
  std::int64_t tokens = 0;
  std::int64_t empty = 0;         // documents without text, which are left out
  std::int64_t broken = 0;        // documents that were skipped
  std::int64_t shards_found = 0;  // of an earlier start, which were not made again
};

// Whether document_sources are numbers of patterns or of files.
enum class SourceNumbers : std::uint8_t { patterns, files };

struct TokenizeOptions {
  std::string text_field = "text";                       // of a line of JSON, or the column of a Parquet file
  std::string separator = {};                            // between documents of a text; empty: a file is a document
  std::optional<std::int32_t> end_token = std::nullopt;  // after each document
  bool special_tokens = false;                           // adds the special tokens that the tokenizer puts around a text
  bool skip_broken = false;                              // false: a broken document is an Error
  std::int64_t shard_tokens = 50'000'000;                // see TokenShardWriter
  SourceNumbers sources = SourceNumbers::patterns;
  int workers = 0;  // threads; 0: all of this rank
  std::function<void(const TokenizeReport&)> after_shard = nullptr;
};

// Makes token shards (PREFIX-00000.safetensors and so on) from texts:
//
//   const std::vector<std::string> inputs{"books", "web-{000..199}.jsonl.gz"};
//   data::tokenize_files(inputs, tokenizers::read_tokenizer("Llama-3.2-1B"), "tokens/train", {.skip_broken = true});
//
// Inputs are patterns (locations_of()). Files that end in .jsonl, .json or .ndjson have a document in each line, files that end
// in .parquet in each row (ParquetRows); other files are text. Any file but Parquet may be compressed by gzip; its name then
// ends in .gz. Documents keep their order. The shards are the same for any number of workers and ranks, byte for byte. If a
// start is killed, the next start continues after the last whole shard. Shards of other inputs or options are an Error.
//
// Broken documents are lines that are not JSON objects with a text in `text_field`, and texts that are not UTF-8. They are an
// Error{invalid_argument} that names file and line. Memory holds the shard that is being filled and a few MiB of text for each
// worker. A text file is held completely if there is no separator.
//
// `ranks` share the work: each rank reads all inputs, and the first rank writes. Collective.
TokenizeReport tokenize_files(std::span<const std::string> inputs, const tokenizers::Tokenizer& tokenizer,
                              const Location& prefix, const TokenizeOptions& options = {}, const Collectives* ranks = nullptr);

}  // namespace data
}  // namespace trireme
