#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/core/range.hpp"

namespace trireme TRIREME_EXPORT {
namespace tokenizers {

namespace detail {
class Codec;
}

struct EncodeOptions {
  bool add_special_tokens = true;    // adds the tokenizer's tokens around a text: <|begin_of_text|>, or [CLS] and [SEP]
  bool parse_special_tokens = true;  // encodes "<|eot_id|>" in the text as this token; false: as ordinary text
};

struct DecodeOptions {
  bool skip_special_tokens = false;
};

struct Encoding {
  std::vector<std::int32_t> tokens;
  // For each token, the range of its bytes in the text, widened to whole characters; empty for an added token.
  std::vector<Range> offsets;
  // For each token, the number of its text in a pair, 0 or 1: BERT's token types.
  std::vector<std::int32_t> types;
};

// Converts text to tokens and back. Copies are cheap. Several threads may use one tokenizer concurrently.
//
//   const auto tokenizer = tokenizers::read_tokenizer("Llama-3.2-1B");
//   const auto tokens = tokenizer.encode("Hello, world");
//   const auto text = tokenizer.decode(tokens, {.skip_special_tokens = true});
//
// Text must be UTF-8; otherwise encode() throws an Error that names the byte. bytes() accepts any text.
class Tokenizer {
 public:
  // A tokenizer with one token per byte.
  static Tokenizer bytes();

  std::vector<std::int32_t> encode(std::string_view text, const EncodeOptions& options = {}) const;
  Encoding encode_with_offsets(std::string_view text, const EncodeOptions& options = {}) const;
  // Encodes a pair of texts, as for BERT. Offsets are relative to each token's own text. A tokenizer without a rule for pairs
  // concatenates the encodings of both texts.
  Encoding encode_pair(std::string_view first, std::string_view second, const EncodeOptions& options = {}) const;

  // Replaces invalid UTF-8 by U+FFFD, except for bytes(). Skips unknown numbers, because a model may have more rows than its
  // tokenizer has tokens. Throws Error for a number below 0.
  std::string decode(std::span<const std::int32_t> tokens, const DecodeOptions& options = {}) const;

  bool is_of_bytes() const;  // whether this tokenizer is bytes()

  std::int64_t vocabulary_size() const;  // the largest token number + 1
  // The number of a token, spelled as in the tokenizer's file; std::nullopt if there is no such token.
  std::optional<std::int32_t> find(std::string_view token) const;
  std::string spelling(std::int32_t token) const;
  bool is_special(std::int32_t token) const;

  explicit Tokenizer(std::shared_ptr<const detail::Codec> codec);

 private:
  friend class TextStream;

  std::shared_ptr<const detail::Codec> codec_;
};

// Decodes generated tokens one by one. The text returned so far is always valid UTF-8.
//
//   tokenizers::TextStream stream(tokenizer);
//   for (const std::int32_t token : generated) std::cout << stream.add(token) << std::flush;
//   std::cout << stream.finish();
class TextStream {
 public:
  explicit TextStream(const Tokenizer& tokenizer, const DecodeOptions& options = {});

  std::string add(std::int32_t token);  // the text that is complete now; may be empty
  std::string finish();                 // the remaining text; resets the stream

 private:
  std::shared_ptr<const detail::Codec> codec_;
  DecodeOptions options_;
  bool is_first_ = true;
  std::string held_;  // bytes of an incomplete character
};

}  // namespace tokenizers
}  // namespace trireme
