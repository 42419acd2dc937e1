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

// The name of Vocabulary::to_text() among the values of a checkpoint and in the metadata of a weights file.
inline constexpr const char* vocabulary_name = "vocabulary";

// A vocabulary made from a text: characters or words, numbered.
class Vocabulary {
 public:
  // The distinct bytes of the text, numbered in ascending order.
  static Vocabulary characters(std::string_view text);

  // The words of the text (separated by spaces), "<eos>" for the end of each line, and "<unk>" for unknown words. Keeps at most
  // `largest` tokens, the most frequent ones. Tokens are numbered by descending frequency, and by spelling if frequencies are
  // equal; "<unk>" is 0.
  static Vocabulary words(std::string_view text, std::int64_t largest);

  std::int64_t size() const { return static_cast<std::int64_t>(tokens_.size()); }

  std::vector<std::int32_t> encode(std::string_view text) const;  // an unknown character throws Error
  std::string decode(std::span<const std::int32_t> tokens) const;

  // Writes all tokens in order as one line of ASCII; from_text() reads such a line and throws Error for any other text.
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
