#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tokenizers/codecs/merges.hpp"
#include "tokenizers/codecs/model.hpp"
#include "tokenizers/codecs/token_spellings.hpp"
#include "tokenizers/codecs/word_table.hpp"

namespace trireme::tokenizers {

struct BpeOptions {
  bool byte_level = false;                   // starts from bytes; otherwise from characters
  bool ignore_merges = false;                // a word that is a token becomes that token without merges
  std::optional<std::int32_t> unknown = {};  // the token for characters without one
  bool fuse_unknown = false;                 // one unknown token for a run of such characters
  bool byte_fallback = false;                // encodes such characters as tokens of bytes, <0x0A>, if all of these exist
};

// Byte pair encoding (Sennrich et al. 2016, arXiv 1508.07909).
class Bpe : public Model {
 public:
  Bpe(std::shared_ptr<const TokenSpellings> tokens, Merges merges, const BpeOptions& options);

  void encode_word(std::string_view word, std::vector<std::int32_t>& tokens, std::vector<std::int32_t>* sizes) const override;

 private:
  void fetch(std::string_view word) const override { whole_.fetch(WordKey(word)); }
  bool comes_of_merges(std::int32_t token) const;
  bool is_known(std::string_view word) const;
  void begin(std::string_view word, std::vector<Symbol>& symbols) const;
  void begin_with_bytes(std::string_view word, std::vector<Symbol>& symbols) const;
  void begin_with_characters(std::string_view word, std::vector<Symbol>& symbols) const;
  void merge(std::string_view word, std::vector<Symbol>& symbols) const;

  std::shared_ptr<const TokenSpellings> tokens_;
  Merges merges_;
  BpeOptions options_;
  std::array<std::int32_t, 256> bytes_;  // the token of each byte, or -1
  WordTable characters_;                 // single characters that are a token
  WordTable whole_;                      // words that are a token
};

}  // namespace trireme::tokenizers
