#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tokenizers/codecs/added_tokens.hpp"
#include "tokenizers/codecs/codec.hpp"
#include "tokenizers/codecs/model.hpp"
#include "tokenizers/codecs/token_spellings.hpp"
#include "tokenizers/text/normalizer.hpp"
#include "tokenizers/text/word_splitter.hpp"

namespace trireme::tokenizers {

// A template around one or two texts is a list of pieces, each a text or tokens.
struct TemplatePiece {
  int text = -1;  // 0 or 1: this text; -1: `tokens`
  std::int32_t type = 0;
  std::vector<std::int32_t> tokens = {};
};
using TextTemplate = std::vector<TemplatePiece>;

// How the texts of tokens are joined when decoding.
struct DecoderOptions {
  bool spaces_between = false;  // a space before each token but the first
  // WordPiece: a space before each token too, except that a token with this prefix loses the prefix instead.
  std::optional<std::string> continuing_prefix = {};
  bool cleans_up = false;                                              // removes spaces before punctuation
  std::vector<std::pair<std::string, std::string>> replacements = {};  // applied in order
  bool byte_fallback = false;                                          // decodes "<0x0A>" as a byte
  std::string drop_from_first = {};                                    // removes all occurrences from the first token
  std::string strip_at_begin = {};                                     // removes this character from the begin of the text,
  std::int64_t strips_at_begin = 0;                                    // up to this many times
};

// The content of a tokenizer's file.
struct TextCodecParts {
  std::shared_ptr<const TokenSpellings> spellings;  // spellings as in the file
  std::shared_ptr<const TokenSpellings> texts;      // the bytes that tokens stand for; may be the same object
  std::vector<AddedToken> added = {};
  AddedTokenFinder added_in_text = {};                // searched before normalization
  AddedTokenFinder added_in_normalized = {};          // searched after normalization
  std::shared_ptr<const Normalizer> normalizer = {};  // null: none
  // For the text between added tokens; null: none.
  std::shared_ptr<const Normalizer> at_begin = {};  // at the begin of a text
  std::shared_ptr<const Normalizer> later = {};
  WordSplitter splitter = {};
  std::shared_ptr<const Model> model;
  bool trims_offsets = false;      // offsets exclude a token's spaces,
  bool keeps_first_space = false;  // except a single one at the begin of a text
  TextTemplate single = {{.text = 0}};
  TextTemplate pair = {{.text = 0}, {.text = 1, .type = 1}};
  DecoderOptions decoder = {};
};

// Finds added tokens, normalizes the rest and splits it into words, which a model encodes.
class TextCodec : public detail::Codec {
 public:
  explicit TextCodec(TextCodecParts parts);

  void encode(std::string_view text, const EncodeOptions& options, Encoding& to, bool with_offsets) const override;
  Encoding encode_pair(std::string_view first, std::string_view second, const EncodeOptions& options) const override;
  bool decode(std::int32_t token, bool is_first, std::string& to) const override;
  bool is_utf8() const override { return true; }
  std::int64_t vocabulary_size() const override { return size_; }
  std::optional<std::int32_t> find(std::string_view token) const override;
  std::string spelling(std::int32_t token) const override;
  bool is_special(std::int32_t token) const override;

 private:
  void encode_text(std::string_view text, bool with_special, Encoding& to, bool with_offsets) const;
  void encode_words(const TracedText& text, std::string_view whole, Encoding& to) const;
  Range offset_of(Range place, const TracedText& text, std::string_view whole) const;
  const AddedToken* added(std::int32_t token) const;
  const std::string* text_of(std::int32_t token) const;  // null if there is no such token

  TextCodecParts parts_;
  std::map<std::int32_t, AddedToken> added_;
  std::int64_t size_ = 0;
};

}  // namespace trireme::tokenizers
