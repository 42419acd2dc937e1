#include "tokenizers/codecs/byte_codec.hpp"

#include "trireme/core/error.hpp"

namespace trireme::tokenizers {

void ByteCodec::encode(std::string_view text, const EncodeOptions&, Encoding& to, bool with_offsets) const {
  to.tokens.reserve(to.tokens.size() + text.size());
  for (const char character : text) to.tokens.push_back(static_cast<unsigned char>(character));
  if (!with_offsets) return;
  for (std::int64_t at = 0; at < std::ssize(text); ++at) to.offsets.push_back({.begin = at, .end = at + 1});
}

Encoding ByteCodec::encode_pair(std::string_view first, std::string_view second, const EncodeOptions& options) const {
  Encoding both;
  encode(first, options, both, true);
  both.types.resize(both.tokens.size(), 0);
  encode(second, options, both, true);
  both.types.resize(both.tokens.size(), 1);
  return both;
}

bool ByteCodec::decode(std::int32_t token, bool, std::string& to) const {
  require(token >= 0, "the token {} is not a byte", token);
  if (token >= vocabulary_size()) return false;
  to += static_cast<char>(token);
  return true;
}

std::optional<std::int32_t> ByteCodec::find(std::string_view token) const {
  if (token.size() != 1) return {};
  return static_cast<unsigned char>(token[0]);
}

std::string ByteCodec::spelling(std::int32_t token) const {
  require(token >= 0 && token < vocabulary_size(), "the token {} is not a byte", token);
  return std::string(1, static_cast<char>(token));
}

}  // namespace trireme::tokenizers
