#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "trireme/tokenizers/codecs/tokenizer.hpp"

namespace trireme::tokenizers::detail {

// The implementation of a Tokenizer. Thread-safe.
class Codec {
 public:
  virtual ~Codec() = default;

  // Appends the tokens of a text, and their offsets if `with_offsets`. `text` may be any bytes.
  virtual void encode(std::string_view text, const EncodeOptions& options, Encoding& to, bool with_offsets) const = 0;
  virtual Encoding encode_pair(std::string_view first, std::string_view second, const EncodeOptions& options) const = 0;

  // Appends the text of a token; nothing for an unknown number of 0 or more. `is_first`: the token begins the text. Returns
  // false if the next token still begins the text.
  virtual bool decode(std::int32_t token, bool is_first, std::string& to) const = 0;
  virtual bool is_utf8() const = 0;  // whether texts are UTF-8 rather than any bytes

  virtual std::int64_t vocabulary_size() const = 0;
  virtual std::optional<std::int32_t> find(std::string_view token) const = 0;
  virtual std::string spelling(std::int32_t token) const = 0;
  virtual bool is_special(std::int32_t token) const = 0;
};

}  // namespace trireme::tokenizers::detail
