#include "tokenizers/text/known_patterns.hpp"

#include <string>
#include <vector>

#include "tokenizers/text/regex.hpp"
#include "trireme/tokenizers/text/patterns.hpp"

namespace trireme::tokenizers {
namespace {

constexpr char32_t end_of_unicode = 0x110000;

// The classes of all characters.
std::vector<CharacterClass> classes_of_characters() {
  std::string all;
  for (char32_t character = 0x80; character < end_of_unicode; ++character) {
    if (character < 0xD800 || character > 0xDFFF) append_character(character, all);
  }
  std::vector<CharacterClass> classes(end_of_unicode, CharacterClass::other);
  const auto mark = [&](const char* pattern, CharacterClass as) {
    Regex(pattern, RegexRules::rust).for_matches(all, [&](const Range& run) {
      for (auto at = static_cast<std::size_t>(run.begin); at < static_cast<std::size_t>(run.end);) {
        classes[character_at(all.data() + at)] = as;
        at += size_of_character(all[at]);
      }
    });
  };
  mark(R"(\p{L}+)", CharacterClass::letter);
  mark(R"(\p{N}+)", CharacterClass::number);
  mark(R"(\s+)", CharacterClass::space);
  return classes;
}

}  // namespace

std::optional<KnownPattern> known_pattern_of(std::string_view pattern) {
  if (pattern == patterns::gpt2) return KnownPattern{.is_gpt2 = true};
  if (pattern == patterns::cl100k) return KnownPattern{};
  if (pattern == patterns::qwen2) return KnownPattern{.most_digits = 1};
  return {};
}

CharacterClass class_beyond_ascii(char32_t character) {
  static const std::vector<CharacterClass> classes = classes_of_characters();
  return classes[character];
}

}  // namespace trireme::tokenizers
