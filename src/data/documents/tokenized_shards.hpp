#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/documents/raw_documents.hpp"
#include "trireme/data/documents/tokenize.hpp"
#include "trireme/data/shards/token_shard_writer.hpp"

namespace trireme::data {

// What is tokenized, as files.
struct TokenizedInputs {
  std::vector<Location> files;
  std::vector<std::int32_t> sources;  // of each file
  std::vector<std::string> names;     // of the sources
};
TokenizedInputs inputs_of(std::span<const std::string> patterns, SourceNumbers sources);

// Writes the shards of one tokenize_files(). Their metadata say of which inputs and by which options they are, and from where
// to where they go, so that another start finds where to go on.
class TokenizedShards {
 public:
  // Looks for shards of an earlier start. Those that are of something else throw Error{invalid_argument}.
  TokenizedShards(const TokenizedInputs& inputs, const tokenizers::Tokenizer& tokenizer, Location prefix,
                  const TokenizeOptions& options);

  const DocumentPlace& next() const { return next_; }  // where to go on
  const TokenizeReport& report() const { return report_; }

  void add(std::span<const std::int32_t> tokens, const RawDocument& document);
  void leave_out(bool is_broken);
  void finish();  // all documents were added

 private:
  void find_earlier();
  void end_shard();
  DocumentPlace place_in(const SafetensorsMetadata& metadata, const char* key, const Location& shard) const;
  std::string text_of(const DocumentPlace& place) const;

  const TokenizedInputs& inputs_;
  Location prefix_;
  const TokenizeOptions& options_;
  SafetensorsMetadata common_;  // of all shards
  TokenizeReport report_;
  std::optional<TokenShardWriter> writer_;
  DocumentPlace begin_, next_;                           // of the shard that is being filled
  std::int64_t empty_ = 0, broken_ = 0;                  // of it
  std::int64_t pending_empty_ = 0, pending_broken_ = 0;  // behind its last document
};

}  // namespace trireme::data
