#include "tokenizers/text/regex_pattern.hpp"

#include <fmt/format.h>

#include <string_view>

#include "trireme/core/error.hpp"

namespace trireme::tokenizers {
namespace {

// Unicode's White_Space. PCRE2's \s also matches U+180E.
constexpr std::string_view white_space =
    R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
// The characters of Oniguruma's \\w.
constexpr std::string_view word_character =
    R"(\p{L}\p{M}\p{Nd}\p{Nl}\p{Pc}\x{b2}\x{b3}\x{b9}\x{bc}-\x{be}\x{24b6}-\x{24e9}\x{1f130}-\x{1f149}\x{1f150}-\x{1f169}\x{1f170}-\x{1f189})";

// Whether the pattern ends with a count, {3} or {1,3}, rather than with the braces of a property.
bool ends_with_count(const std::string& pattern) {
  const std::size_t open = pattern.rfind('{');
  if (open == std::string::npos || open == 0) return false;
  return pattern.find_first_not_of("0123456789,", open + 1) == pattern.size() - 1;
}

// Translates \\p{...}; `at` is the place of the p and moves to the end. In PCRE2 a script's name matches all characters that
// are used in the script.
std::string property(const std::string& pattern, std::size_t& at) {
  static constexpr std::string_view categories =
      " C Cc Cf Cn Co Cs L Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm So Z Zl Zp Zs Any ";
  const char kind = pattern[at];
  const std::size_t end = pattern.find('}', at);
  if (at + 1 >= pattern.size() || pattern[at + 1] != '{' || end == std::string::npos) return std::string{'\\', kind};
  std::string name = pattern.substr(at + 2, end - at - 2);
  at = end;
  const bool is_not = name.starts_with('^');
  if (is_not) name.erase(0, 1);
  const bool is_category = categories.find(fmt::format(" {} ", name)) != std::string_view::npos;
  return fmt::format("\\{}{{{}{}{}}}", kind, is_not ? "^" : "", is_category ? "" : "sc:", name);
}

}  // namespace

std::string pattern_for_pcre2(const std::string& pattern, RegexRules rules) {
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
        // Oniguruma supports nested classes and intersections, which PCRE2 does not.
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
        const bool of_lines = rules == RegexRules::oniguruma;
        result += character == '^' ? (of_lines ? "(?m:^)" : "\\A") : (of_lines ? "(?m:$)" : "\\z");
        continue;
      } else if (character == '+' && at > 0 && pattern[at - 1] == '}' && ends_with_count(result) &&
                 rules == RegexRules::oniguruma) {
        refuse("{...}+, which repeats there");
      } else if (pattern.compare(at, 2, "(*") == 0) {
        refuse("(*");
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
      const bool begins_range = in_class && at + 2 < pattern.size() && pattern[at + 1] == '-' && pattern[at + 2] != ']';
      if (begins_range) refuse(pattern.substr(at - 1, 3));
    } else if ((escaped == 'S' || escaped == 'W') && !in_class) {
      result += "[^";
      result += escaped == 'S' ? white_space : word_character;
      result += ']';
    } else if (escaped == 'p' || escaped == 'P') {
      result += property(pattern, at);
    } else if (std::string_view("rntfvd").find(escaped) != std::string_view::npos) {
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
