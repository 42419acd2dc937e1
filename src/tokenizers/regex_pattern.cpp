#include "tokenizers/regex_pattern.hpp"

#include <string_view>

#include "trireme/core/error.hpp"

namespace trireme::tokenizers {
namespace {

// Unicode's White_Space. PCRE2's \s has U+180E too.
constexpr std::string_view white_space =
    R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
constexpr std::string_view word_character = R"(\p{L}\p{M}\p{Nd}\p{Pc})";

}  // namespace

std::string pattern_for_pcre2(const std::string& pattern) {
  std::string result;
  bool in_class = false;
  const auto refuse = [&](const std::string& what) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = "a tokenizer's regular expression has a part that is not supported: " + what,
                 .had = pattern});
  };
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    const char character = pattern[at];
    if (character != '\\') {
      if (in_class) {
        // Oniguruma knows classes within classes and their intersections.
        if (character == '[') refuse("[ within a class");
        if (character == '&' && pattern.compare(at, 2, "&&") == 0) refuse("&& within a class");
        if (character == ']') in_class = false;
      } else if (character == '[') {
        in_class = true;
        result += character;
        if (at + 1 < pattern.size() && pattern[at + 1] == '^') result += pattern[++at];
        if (at + 1 < pattern.size() && pattern[at + 1] == ']') refuse("a class that begins with ]");
        continue;
      } else if (character == '^' || character == '$') {
        refuse(std::string(1, character));
      } else if (character == '(' && pattern.compare(at, 2, "(?") == 0) {
        bool is_known = false;
        for (const std::string_view opening : {"(?:", "(?i:", "(?!", "(?=", "(?<!", "(?<="}) {
          is_known = is_known || pattern.compare(at, opening.size(), opening) == 0;
        }
        if (!is_known) refuse(pattern.substr(at, 4));
      }
      result += character;
      continue;
    }
    if (++at == pattern.size()) refuse("\\ at its end");
    const char escaped = pattern[at];
    if (escaped == 's' || escaped == 'w') {
      const std::string_view members = escaped == 's' ? white_space : word_character;
      if (!in_class) result += '[';
      result += members;
      if (!in_class) result += ']';
    } else if ((escaped == 'S' || escaped == 'W') && !in_class) {
      result += "[^";
      result += escaped == 'S' ? white_space : word_character;
      result += ']';
    } else if (std::string_view("rntfvdpP").find(escaped) != std::string_view::npos) {
      result += escaped == 'v' ? std::string("\\x{b}") : std::string{'\\', escaped};
    } else {
      const auto byte = static_cast<unsigned char>(escaped);
      const bool is_punctuation =
          byte > ' ' && byte < 127 && !(byte >= '0' && byte <= '9') && !((byte | 32) >= 'a' && (byte | 32) <= 'z');
      if (!is_punctuation) refuse(std::string{'\\', escaped});
      result += '\\';
      result += escaped;
    }
  }
  return result;
}

}  // namespace trireme::tokenizers
