#include "tokenizers/chat/jinja_lexer.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace trireme::tokenizers {
namespace {

constexpr std::string_view jinja_spaces = " \t\n\v\f\r";

bool is_digit(char character) { return character >= '0' && character <= '9'; }
bool begins_name(char character) {
  return (character >= 'a' && character <= 'z') || (character >= 'A' && character <= 'Z') || character == '_';
}

// Reads a string from after its opening quote to after its closing one. std::nullopt for an unsupported escape or a missing
// end.
std::optional<std::string> read_string(std::string_view source, std::size_t& at, char quote) {
  std::string text;
  for (; at < source.size(); ++at) {
    if (source[at] == quote) {
      ++at;
      return text;
    }
    if (source[at] != '\\') {
      text += source[at];
      continue;
    }
    constexpr std::string_view escapes = "nrt\\'\"", meanings = "\n\r\t\\'\"";
    if (++at == source.size()) return std::nullopt;
    const std::size_t known = escapes.find(source[at]);
    if (known == escapes.npos) return std::nullopt;
    text += meanings[known];
  }
  return std::nullopt;
}

// Reads the tokens from `at` to the end of the tag and moves `at` behind it.
std::optional<JinjaTokens> read_tokens(std::string_view source, std::size_t& at, std::string_view end, bool& strips) {
  static constexpr auto signs =
      std::to_array<std::string_view>({"==", "!=", "<=", ">=", "//", "**", "+", "-", "*", "/", "%", "~", "|",
                                       ".",  ",",  ":",  "(",  ")",  "[",  "]", "{", "}", "<", ">", "="});
  constexpr int deepest = 32;
  int depth = 0;
  JinjaTokens tokens;
  while (at < source.size()) {
    const std::string_view rest = source.substr(at);
    if (jinja_spaces.find(rest[0]) != jinja_spaces.npos) {
      ++at;
      continue;
    }
    strips = rest[0] == '-' && rest.substr(1).starts_with(end);
    if (strips || rest.starts_with(end)) {
      at += end.size() + (strips ? 1 : 0);
      return tokens;
    }
    if (rest[0] == '\'' || rest[0] == '"') {
      const char quote = source[at++];
      auto text = read_string(source, at, quote);
      if (!text) return std::nullopt;
      tokens.push_back({.kind = JinjaToken::Kind::text, .value = *std::move(text)});
      continue;
    }
    if (begins_name(rest[0]) || is_digit(rest[0])) {
      const auto stops = [](char character) { return !begins_name(character) && !is_digit(character); };
      const auto size = static_cast<std::size_t>(std::ranges::find_if(rest, stops) - rest.begin());
      const bool is_name = begins_name(rest[0]);
      tokens.push_back(
          {.kind = is_name ? JinjaToken::Kind::name : JinjaToken::Kind::number, .value = std::string(rest.substr(0, size))});
      at += size;
      continue;
    }
    const auto* const sign = std::ranges::find_if(signs, [&](std::string_view each) { return rest.starts_with(each); });
    if (sign == signs.end()) return std::nullopt;
    if (*sign == "(" || *sign == "[" || *sign == "{") ++depth;
    if (*sign == ")" || *sign == "]" || *sign == "}") --depth;
    if (depth < 0 || depth > deepest) return std::nullopt;
    tokens.push_back({.kind = JinjaToken::Kind::sign, .value = std::string(*sign)});
    at += sign->size();
  }
  return std::nullopt;
}

// Normalizes lines as Jinja does: lines end with \n, and the last newline is dropped.
std::string with_plain_lines(std::string_view source) {
  std::string text;
  for (std::size_t at = 0; at < source.size(); ++at) {
    const bool is_pair = source[at] == '\r' && at + 1 < source.size() && source[at + 1] == '\n';
    if (!is_pair) text += source[at] == '\r' ? '\n' : source[at];
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

// The text before a tag, without the white space that the tag strips.
std::string_view before_tag(std::string_view text, bool strips, bool is_output, bool begins_line) {
  if (strips) {
    const std::size_t last = text.find_last_not_of(jinja_spaces);
    return text.substr(0, last == text.npos ? 0 : last + 1);
  }
  const std::size_t line = text.rfind('\n') + 1;  // 0 without a line end
  const bool is_blank = text.find_first_not_of(jinja_spaces, line) == text.npos;
  return !is_output && is_blank && (line > 0 || begins_line) ? text.substr(0, line) : text;
}

}  // namespace

std::optional<std::vector<JinjaPart>> lex_jinja(std::string_view source) {
  const std::string plain = with_plain_lines(source);
  const std::string_view all = plain;
  std::vector<JinjaPart> parts;
  bool begins_line = true;
  const auto add_text = [&parts](std::string_view text) {
    if (!text.empty()) parts.push_back({.kind = JinjaPart::Kind::text, .text = std::string(text)});
  };
  for (std::size_t at = 0; at < all.size();) {
    std::size_t open = all.find('{', at);
    while (open != all.npos &&
           (open + 1 == all.size() || std::string_view("{%#").find(all[open + 1]) == std::string_view::npos)) {
      open = all.find('{', open + 1);
    }
    if (open == all.npos) {
      add_text(all.substr(at));
      return parts;
    }
    const char kind = all[open + 1];
    const bool strips_before = open + 2 < all.size() && all[open + 2] == '-';
    if (open + 2 < all.size() && all[open + 2] == '+') return std::nullopt;
    add_text(before_tag(all.substr(at, open - at), strips_before, kind == '{', begins_line));
    at = open + 2 + (strips_before ? 1 : 0);
    bool strips_behind = false;
    if (kind == '#') {
      const std::size_t close = all.find("#}", at);
      if (close == all.npos) return std::nullopt;
      strips_behind = close > at && all[close - 1] == '-';
      at = close + 2;
    } else {
      auto tokens = read_tokens(all, at, kind == '{' ? "}}" : "%}", strips_behind);
      if (!tokens || tokens->empty()) return std::nullopt;
      parts.push_back(
          {.kind = kind == '{' ? JinjaPart::Kind::output : JinjaPart::Kind::statement, .tokens = *std::move(tokens)});
    }
    const std::size_t tag_end = at;
    if (strips_behind) {
      at = std::min(all.find_first_not_of(jinja_spaces, at), all.size());
    } else if (kind != '{' && at < all.size() && all[at] == '\n') {
      ++at;
    }
    begins_line = at > tag_end && all[at - 1] == '\n';
  }
  return parts;
}

}  // namespace trireme::tokenizers
