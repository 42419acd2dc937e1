#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "trireme/tokenizers/codecs/tokenizer.hpp"

namespace trireme::tokenizers::detail {

// What a Tokenizer does. Thread-safe.
class Codec {
 public:
  virtual ~Codec() = default;

  // Appends the tokens of a text; their offsets too, if asked for. `text` is any.
  virtual void encode(std::string_view text, const EncodeOptions& options, Encoding& to, bool with_offsets) const = 0;
  virtual Encoding encode_pair(std::string_view first, std::string_view second, const EncodeOptions& options) const = 0;

  // Appends what a token stands for, of a number from 0 on that is none nothing; `is_first`: it begins the text. False: so does
  // the next one.
  virtual bool decode(std::int32_t token, bool is_first, std::string& to) const = 0;
  virtual bool is_utf8() const = 0;  // texts are UTF-8; else any bytes

  virtual std::int64_t vocabulary_size() const = 0;
  virtual std::optional<std::int32_t> find(std::string_view token) const = 0;
  virtual std::string spelling(std::int32_t token) const = 0;
  virtual bool is_special(std::int32_t token) const = 0;
};

}  // namespace trireme::tokenizers::detail
