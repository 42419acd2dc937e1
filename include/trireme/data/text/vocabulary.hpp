#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace data {

// Under which checkpoints keep a vocabulary's to_text() as a value, and files of weights as metadata.
inline constexpr const char* vocabulary_name = "vocabulary";

// The tokens of one text, numbered. A value.
class Vocabulary {
 public:
  // Every different byte of the text, numbered by value.
  static Vocabulary characters(std::string_view text);

  // Words between spaces, and "<eos>" for every end of a line; "<unk>" stands for words that the vocabulary lacks. The
  // `largest` most frequent ones, numbered by falling frequency, words of the same frequency by spelling.
  static Vocabulary words(std::string_view text, std::int64_t largest);

  std::int64_t size() const { return static_cast<std::int64_t>(tokens_.size()); }

  std::vector<std::int32_t> encode(std::string_view text) const;  // a character that is unknown is an error
  std::string decode(std::span<const std::int32_t> tokens) const;

  // A line of ASCII with all tokens in their order, and the vocabulary of such a line; any other text is an error.
  std::string to_text() const;
  static Vocabulary from_text(std::string_view text);

  friend bool operator==(const Vocabulary& a, const Vocabulary& b) { return a.words_ == b.words_ && a.tokens_ == b.tokens_; }

 private:
  Vocabulary(bool words, std::vector<std::string> tokens);

  bool words_;
  std::vector<std::string> tokens_;
  std::map<std::string, std::int32_t, std::less<>> numbers_;
};

}  // namespace data
}  // namespace trireme
