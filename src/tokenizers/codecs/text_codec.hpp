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

// What stands around a text, or two of them: tokens and places of texts in their order.
struct TemplatePiece {
  int text = -1;  // 0 or 1; -1: `tokens`
  std::int32_t type = 0;
  std::vector<std::int32_t> tokens = {};
};
using TextTemplate = std::vector<TemplatePiece>;

// How the texts of tokens make a text.
struct DecoderOptions {
  bool spaces_between = false;  // a space before each but the first
  // Of WordPiece: such a space too, unless the token begins with this, which is left out.
  std::optional<std::string> continuing_prefix = {};
  bool cleans_up = false;                                              // no space before signs
  std::vector<std::pair<std::string, std::string>> replacements = {};  // one after the other
  bool byte_fallback = false;                                          // "<0x0A>" is a byte
  std::string drop_from_first = {};                                    // a text that is left out of the first token, every time
  std::string strip_at_begin = {};                                     // a character that is left out of the text's begin,
  std::int64_t strips_at_begin = 0;                                    // so often
};

// All that a tokenizer's file says.
struct TextCodecParts {
  std::shared_ptr<const TokenSpellings> spellings;  // as in the file
  std::shared_ptr<const TokenSpellings>
      texts;  // what they stand for: bytes, if the file spells them otherwise; may be the same
  std::vector<AddedToken> added = {};
  AddedTokenFinder added_in_text = {};                // before it is normalized
  AddedTokenFinder added_in_normalized = {};          // and behind that
  std::shared_ptr<const Normalizer> normalizer = {};  // null: none
  // Of what lies between added tokens; null: none.
  std::shared_ptr<const Normalizer> at_begin = {};  // where a text begins
  std::shared_ptr<const Normalizer> later = {};
  WordSplitter splitter = {};
  std::shared_ptr<const Model> model;
  bool trims_offsets = false;      // spaces of a token do not count,
  bool keeps_first_space = false;  // but for a single one that a text begins with
  TextTemplate single = {{.text = 0}};
  TextTemplate pair = {{.text = 0}, {.text = 1, .type = 1}};
  DecoderOptions decoder = {};
};

// Added tokens are found, the rest is normalized and cut into words, of which a model makes tokens.
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
  const std::string* text_of(std::int32_t token) const;  // null: there is no such token

  TextCodecParts parts_;
  std::map<std::int32_t, AddedToken> added_;
  std::int64_t size_ = 0;
};

}  // namespace trireme::tokenizers
