#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

// A lexer for Jinja templates as transformers reads them, with trim_blocks and lstrip_blocks.
namespace trireme::tokenizers {

struct JinjaToken {
  enum class Kind : std::uint8_t { name, number, text, sign };
  Kind kind;
  std::string value;  // for a text its content

  bool operator==(const JinjaToken&) const = default;
  bool is_sign(std::string_view sign) const { return kind == Kind::sign && value == sign; }
  bool is_name(std::string_view name) const { return kind == Kind::name && value == name; }
};
using JinjaTokens = std::vector<JinjaToken>;

struct JinjaPart {
  enum class Kind : std::uint8_t { text, output, statement };
  Kind kind;
  std::string text = {};    // for a text, as it is written
  JinjaTokens tokens = {};  // for {{ }} and {% %}
};

// The parts of a template without comments and empty texts. std::nullopt if it is invalid or uses unsupported features.
std::optional<std::vector<JinjaPart>> lex_jinja(std::string_view source);

}  // namespace trireme::tokenizers
