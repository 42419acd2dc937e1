#include "trireme/tokenizers/codecs/tokenizer.hpp"

#include <utility>

#include "tokenizers/codecs/byte_codec.hpp"
#include "tokenizers/codecs/codec.hpp"
#include "tokenizers/text/utf8.hpp"

namespace trireme::tokenizers {

Tokenizer::Tokenizer(std::shared_ptr<const detail::Codec> codec) : codec_(std::move(codec)) {}

Tokenizer Tokenizer::bytes() { return Tokenizer(std::make_shared<const ByteCodec>()); }

std::vector<std::int32_t> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  Encoding encoding;
  codec_->encode(text, options, encoding, false);
  return std::move(encoding.tokens);
}

Encoding Tokenizer::encode_with_offsets(std::string_view text, const EncodeOptions& options) const {
  Encoding encoding;
  codec_->encode(text, options, encoding, true);
  encoding.types.resize(encoding.tokens.size());
  return encoding;
}

Encoding Tokenizer::encode_pair(std::string_view first, std::string_view second, const EncodeOptions& options) const {
  return codec_->encode_pair(first, second, options);
}

std::string Tokenizer::decode(std::span<const std::int32_t> tokens, const DecodeOptions& options) const {
  std::string text;
  bool is_first = true;
  for (const std::int32_t token : tokens) {
    if (options.skip_special_tokens && codec_->is_special(token)) continue;
    is_first = !codec_->decode(token, is_first, text) && is_first;
  }
  return codec_->is_utf8() ? valid(text) : text;
}

bool Tokenizer::is_of_bytes() const { return !codec_->is_utf8(); }

std::int64_t Tokenizer::vocabulary_size() const { return codec_->vocabulary_size(); }

std::optional<std::int32_t> Tokenizer::find(std::string_view token) const { return codec_->find(token); }

std::string Tokenizer::spelling(std::int32_t token) const { return codec_->spelling(token); }

bool Tokenizer::is_special(std::int32_t token) const { return codec_->is_special(token); }

TextStream::TextStream(const Tokenizer& tokenizer, const DecodeOptions& options)
    : codec_(tokenizer.codec_), options_(options) {}

std::string TextStream::add(std::int32_t token) {
  if (options_.skip_special_tokens && codec_->is_special(token)) return {};
  is_first_ = !codec_->decode(token, is_first_, held_) && is_first_;
  if (!codec_->is_utf8()) return std::exchange(held_, {});
  const std::size_t certain = held_.size() - size_of_unfinished(held_);
  std::string text = valid(std::string_view(held_).substr(0, certain));
  held_.erase(0, certain);
  return text;
}

std::string TextStream::finish() {
  is_first_ = true;
  return valid(std::exchange(held_, {}));
}

}  // namespace trireme::tokenizers
