#pragma once

#include "tokenizers/codecs/codec.hpp"

namespace trireme::tokenizers {

// A codec with one token per byte.
class ByteCodec : public detail::Codec {
 public:
  void encode(std::string_view text, const EncodeOptions& options, Encoding& to, bool with_offsets) const override;
  Encoding encode_pair(std::string_view first, std::string_view second, const EncodeOptions& options) const override;
  bool decode(std::int32_t token, bool is_first, std::string& to) const override;
  bool is_utf8() const override { return false; }
  std::int64_t vocabulary_size() const override { return 256; }
  std::optional<std::int32_t> find(std::string_view token) const override;
  std::string spelling(std::int32_t token) const override;
  bool is_special(std::int32_t) const override { return false; }
};

}  // namespace trireme::tokenizers
