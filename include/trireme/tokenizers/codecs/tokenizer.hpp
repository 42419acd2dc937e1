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
  bool add_special_tokens = true;    // what the tokenizer puts around a text, as <|begin_of_text|> or [CLS] and [SEP]
  bool parse_special_tokens = true;  // "<|eot_id|>" in the text is the token of that name; false: text as any other
};

struct DecodeOptions {
  bool skip_special_tokens = false;
};

struct Encoding {
  std::vector<std::int32_t> tokens;
  // Of each token, the bytes of the text that it stands for, widened to whole characters. Empty: one that was added.
  std::vector<Range> offsets;
  // Of each token, 0 or 1: the text of a pair that it is of, as BERT's token types are.
  std::vector<std::int32_t> types;
};

// From text to tokens and back. A value; may be used by several threads at once.
//
//   const auto tokenizer = tokenizers::read_tokenizer("Llama-3.2-1B");
//   const auto tokens = tokenizer.encode("Hello, world");
//   const auto text = tokenizer.decode(tokens, {.skip_special_tokens = true});
//
// Texts are UTF-8: what is none is an Error that names the byte, but for bytes().
class Tokenizer {
 public:
  // Every byte is a token.
  static Tokenizer bytes();

  std::vector<std::int32_t> encode(std::string_view text, const EncodeOptions& options = {}) const;
  Encoding encode_with_offsets(std::string_view text, const EncodeOptions& options = {}) const;
  // Two texts that belong together, as BERT reads them. Offsets are each of its own text. A tokenizer that says nothing of
  // pairs puts one behind the other.
  Encoding encode_pair(std::string_view first, std::string_view second, const EncodeOptions& options = {}) const;

  // What is no UTF-8 becomes U+FFFD, but for bytes(). A number that no token has is left out, as models may have more rows than
  // their tokenizer has tokens; one below 0 is an Error.
  std::string decode(std::span<const std::int32_t> tokens, const DecodeOptions& options = {}) const;

  bool is_of_bytes() const;  // bytes()

  std::int64_t vocabulary_size() const;  // the largest number of a token, and 1
  // The number of a token that is spelled as in the tokenizer's file; none: there is no such token.
  std::optional<std::int32_t> find(std::string_view token) const;
  std::string spelling(std::int32_t token) const;
  bool is_special(std::int32_t token) const;

  explicit Tokenizer(std::shared_ptr<const detail::Codec> codec);

 private:
  friend class TextStream;

  std::shared_ptr<const detail::Codec> codec_;
};

// Decodes token by token, as a model makes them: what has been given out stays valid UTF-8.
//
//   tokenizers::TextStream stream(tokenizer);
//   for (const std::int32_t token : generated) std::cout << stream.add(token) << std::flush;
//   std::cout << stream.finish();
class TextStream {
 public:
  explicit TextStream(const Tokenizer& tokenizer, const DecodeOptions& options = {});

  std::string add(std::int32_t token);  // what is certain now; may be empty
  std::string finish();                 // the rest; the stream begins anew

 private:
  std::shared_ptr<const detail::Codec> codec_;
  DecodeOptions options_;
  bool is_first_ = true;
  std::string held_;  // bytes that may begin a character
};

}  // namespace tokenizers
}  // namespace trireme
