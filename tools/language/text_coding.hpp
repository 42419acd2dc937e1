#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "language_program.hpp"

// Encodes text as the tokens of a model, and decodes them without special tokens.
struct TextCoding {
  bool joins_words = true;  // text that follows may change the last tokens of a text
  // `begins`: adds the tokens that the tokenizer puts around a text.
  std::function<std::vector<std::int32_t>(std::string_view, bool begins)> encode;
  std::function<std::optional<std::int32_t>(std::string_view)> find;  // the token with this spelling
  // Decodes a text that continues `before`.
  std::function<std::string(std::span<const std::int32_t> before, std::span<const std::int32_t> tokens)> decode_after;
  // Called with the tokens of one text in turn: returns the characters that are complete. After the last token, decode_rest()
  // returns the rest.
  std::function<std::string(std::int32_t)> decode_next;
  std::function<std::string()> decode_rest;
};

// `folder`: of the model.
TextCoding coding_of(const LanguageOptions& options, const trireme::Location& folder);
