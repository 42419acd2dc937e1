#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/files/location.hpp"
#include "trireme/tokenizers/text/patterns.hpp"

namespace trireme TRIREME_EXPORT {
namespace tokenizers {

struct BpeTrainingOptions {
  std::int64_t vocabulary_size = 32'000;         // the largest number of tokens, with special tokens and the 256 bytes
  std::int64_t min_frequency = 0;                // pairs of tokens that occur less often are not merged
  std::vector<std::string> special_tokens = {};  // get the first numbers; they are not searched for in the texts
  std::string pattern = patterns::cl100k;        // a regular expression of Oniguruma; tokens lie within its matches
  bool skip_invalid = false;                     // skips and counts texts that are not UTF-8; false: they are an Error
  int threads = 1;                               // the result does not depend on their number
};

// A byte-level tokenizer.
struct TrainedBpe {
  std::vector<std::string> tokens = {};                            // by number, spelled as in tokenizer.json
  std::vector<std::pair<std::int32_t, std::int32_t>> merges = {};  // lowest rank first
  std::vector<std::string> special_tokens;
  std::string pattern;

  // The texts from which the tokenizer was made.
  std::int64_t texts = 0, skipped_texts = 0;
  std::int64_t bytes = 0;
  std::int64_t words = 0, distinct_words = 0;

  // The content of a tokenizer.json, which read_tokenizer() and Hugging Face's tokenizers read.
  std::string tokenizer_json() const;
};

// Files of texts. By default each line is a text, with the newline at its end.
struct TextFiles {
  std::vector<Location> files;
  std::string json_field =
      {};              // not empty: each line is a JSON object that has the text in this field; empty lines are skipped
  bool whole = false;  // each file is one text
};

// Learns the merges of byte pair encoding: starts from bytes and repeatedly merges the most frequent pair of tokens within
// words. The merges and their order are those of BpeTrainer of Hugging Face's tokenizers with ByteLevel.alphabet(), but counts
// do not overflow. Memory is needed for the distinct words, not for the texts. Throws Error for a text that is not UTF-8, with
// the file and line or the number of the text.
TrainedBpe train_bpe(const TextFiles& files, const BpeTrainingOptions& options = {});
TrainedBpe train_bpe(std::span<const std::string> texts, const BpeTrainingOptions& options = {});
// `next` returns std::nullopt after the last text. Several threads call `next`, one at a time.
TrainedBpe train_bpe(const std::function<std::optional<std::string>()>& next, const BpeTrainingOptions& options = {});

}  // namespace tokenizers
}  // namespace trireme
