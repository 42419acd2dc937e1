#include "tokenizers/codecs/text_codec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <span>

#include "tokenizers/text/utf8.hpp"
#include "trireme/core/error.hpp"

namespace trireme::tokenizers {
namespace {

void check(std::string_view text) {
  require(text.size() <= static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()),
          "a text of {} bytes is too long to be encoded at once: split it, for example between documents", text.size());
  const std::size_t invalid = first_invalid(text);
  if (invalid == text.size()) return;
  throw Error({.code = ErrorCode::invalid_argument,
               .message = fmt::format("a text is no UTF-8: byte {} of {} is 0x{:02X}", invalid, text.size(),
                                      static_cast<unsigned char>(text[invalid])),
               .hint = "convert it, with iconv for example, or take bytes as tokens"});
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

void clean_up(std::string& text) {
  for (const auto& [from, to] : {std::pair{" .", "."},
                                 {" ?", "?"},
                                 {" !", "!"},
                                 {" ,", ","},
                                 {" ' ", "'"},
                                 {" n't", "n't"},
                                 {" 'm", "'m"},
                                 {" do not", " don't"},
                                 {" 's", "'s"},
                                 {" 've", "'ve"},
                                 {" 're", "'re"}}) {
    replace_all(text, from, to);
  }
}

// Parses the byte in "<0x0A>".
std::optional<char> fallback_byte(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text[5] != '>') return {};
  unsigned byte = 0;
  const char* const end = text.data() + 5;
  if (std::from_chars(text.data() + 3, end, byte, 16).ptr != end) return {};
  return static_cast<char>(byte);
}

}  // namespace

TextCodec::TextCodec(TextCodecParts parts) : parts_(std::move(parts)) {
  size_ = parts_.spellings->size();
  for (const AddedToken& token : parts_.added) {
    added_.emplace(token.number, token);
    size_ = std::max<std::int64_t>(size_, token.number + 1);
  }
}

void TextCodec::encode(std::string_view text, const EncodeOptions& options, Encoding& to, bool with_offsets) const {
  check(text);
  for (const TemplatePiece& piece : parts_.single) {
    if (piece.text == 0) {
      encode_text(text, options.parse_special_tokens, to, with_offsets);
    } else if (options.add_special_tokens) {
      to.tokens.insert(to.tokens.end(), piece.tokens.begin(), piece.tokens.end());
    }
    if (!with_offsets) continue;
    to.offsets.resize(to.tokens.size());
    to.types.resize(to.tokens.size(), piece.type);
  }
}

Encoding TextCodec::encode_pair(std::string_view first, std::string_view second, const EncodeOptions& options) const {
  check(first);
  check(second);
  Encoding to;
  for (const TemplatePiece& piece : parts_.pair) {
    if (piece.text < 0) {
      if (!options.add_special_tokens) continue;
      to.tokens.insert(to.tokens.end(), piece.tokens.begin(), piece.tokens.end());
    } else {
      encode_text(piece.text == 0 ? first : second, options.parse_special_tokens, to, true);
    }
    to.offsets.resize(to.tokens.size());
    to.types.resize(to.tokens.size(), piece.type);
  }
  return to;
}

void TextCodec::encode_text(std::string_view text, bool with_special, Encoding& to, bool with_offsets) const {
  to.tokens.reserve(to.tokens.size() + text.size() / 4);  // about as many as there are
  const auto add = [&](const Range& source, const AddedToken& token) {
    to.tokens.push_back(token.number);
    if (with_offsets) to.offsets.push_back(widened(source, text));
  };
  const auto rest = [&](const Range& range) {
    TracedText normalized(part_of(text, range), range.begin, with_offsets);
    if (parts_.normalizer != nullptr) parts_.normalizer->normalize(normalized);
    const auto words = [&](const Range& between) {
      TracedText piece(normalized, between);
      const auto& cutting = normalized.comes_from_first(between.begin) ? parts_.at_begin : parts_.later;
      if (cutting != nullptr) cutting->normalize(piece);
      encode_words(piece, text, to);
    };
    const auto token = [&](const Range& found, const AddedToken& which) {
      add(with_offsets ? normalized.source(found.begin, found.end) : Range{}, which);
    };
    parts_.added_in_normalized.split(normalized.text(), with_special, words, token);
  };
  parts_.added_in_text.split(text, with_special, rest, add);
}

void TextCodec::encode_words(const TracedText& text, std::string_view whole, Encoding& to) const {
  std::array<Range, Model::most_words> words;
  std::size_t count = 0;
  const auto encode_them = [&] {
    const auto those = std::span(words).first(std::exchange(count, 0));
    if (!text.is_traced()) return parts_.model->encode(text.text(), those, to.tokens);
    static thread_local std::vector<std::int32_t> sizes;
    for (const Range& word : those) {
      sizes.clear();
      parts_.model->encode_word(part_of(text.text(), word), to.tokens, &sizes);
      auto size = sizes.begin();
      for (std::int64_t begin = word.begin, end = 0; begin < word.end; begin = end) {
        end = begin + *size++;
        to.offsets.push_back(offset_of({.begin = begin, .end = end}, text, whole));
      }
    }
  };
  parts_.splitter.split(text.text(), [&](Range word) {  // a copy, which stays in registers
    words[count++] = word;
    if (count == words.size()) encode_them();
  });
  if (count > 0) encode_them();
}

// The bytes of the whole text that a token at `place` stands for.
Range TextCodec::offset_of(Range place, const TracedText& text, std::string_view whole) const {
  if (parts_.trims_offsets) {
    const auto is_space = [&](std::int64_t at) { return text.text()[static_cast<std::size_t>(at)] == ' '; };
    const bool is_first = place.begin == 0 && text.source(0, 1).begin == 0;
    while (place.begin < place.end && is_space(place.begin)) ++place.begin;
    if (parts_.keeps_first_space && is_first && place.begin == 1) place.begin = 0;
    while (place.end > place.begin && is_space(place.end - 1)) --place.end;
  }
  return place.count() == 0 ? Range{} : widened(text.source(place.begin, place.end), whole);
}

const AddedToken* TextCodec::added(std::int32_t token) const {
  const auto found = added_.find(token);
  return found == added_.end() ? nullptr : &found->second;
}

const std::string* TextCodec::text_of(std::int32_t token) const {
  if (const AddedToken* const one = added(token)) return &one->content;
  if (parts_.texts->has(token)) return &parts_.texts->text(token);
  return parts_.spellings->has(token) ? &parts_.spellings->text(token) : nullptr;
}

bool TextCodec::decode(std::int32_t token, bool is_first, std::string& to) const {
  require(token >= 0, "{} is no token of the tokenizer, whose {} tokens are numbered from 0", token, size_);
  const DecoderOptions& decoder = parts_.decoder;
  const std::string* const found = text_of(token);
  if (found == nullptr) return false;
  const std::string& text = *found;
  const bool is_plain = !decoder.spaces_between && !decoder.continuing_prefix && decoder.replacements.empty() &&
                        !decoder.byte_fallback && decoder.drop_from_first.empty() && !decoder.cleans_up &&
                        decoder.strips_at_begin == 0;
  if (is_plain) {
    to += text;
    return true;
  }
  std::string own = text;
  if (decoder.continuing_prefix && !is_first && own.starts_with(*decoder.continuing_prefix)) {
    own.erase(0, decoder.continuing_prefix->size());
  } else if ((decoder.continuing_prefix || decoder.spaces_between) && !is_first) {
    own.insert(own.begin(), ' ');
  }
  if (decoder.cleans_up) clean_up(own);
  if (is_first && !decoder.drop_from_first.empty()) replace_all(own, decoder.drop_from_first, "");
  for (const auto& [from, instead] : decoder.replacements) replace_all(own, from, instead);
  if (decoder.byte_fallback) {
    if (const auto byte = fallback_byte(own)) own = *byte;
  }
  for (std::int64_t strip = 0; is_first && strip < decoder.strips_at_begin && own.starts_with(decoder.strip_at_begin);
       ++strip) {
    own.erase(0, decoder.strip_at_begin.size());
  }
  to += own;
  return true;
}

std::optional<std::int32_t> TextCodec::find(std::string_view token) const {
  for (const auto& [number, one] : added_) {
    if (one.content == token) return number;
  }
  return parts_.spellings->find(token);
}

std::string TextCodec::spelling(std::int32_t token) const {
  if (const AddedToken* const one = added(token)) return one->content;
  require(parts_.spellings->has(token), "{} is no token of the tokenizer, whose {} tokens are numbered from 0", token, size_);
  return parts_.spellings->text(token);
}

bool TextCodec::is_special(std::int32_t token) const {
  const AddedToken* const one = added(token);
  return one != nullptr && one->is_special;
}

}  // namespace trireme::tokenizers
