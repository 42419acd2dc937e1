#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "language_program.hpp"

// Text as the tokens of a model, and back without special tokens.
struct TextCoding {
  bool joins_words = true;  // what follows a text may change the tokens of its end
  // `begins`: with the tokens that the tokenizer puts around a text.
  std::function<std::vector<std::int32_t>(std::string_view, bool begins)> encode;
  std::function<std::optional<std::int32_t>(std::string_view)> find;  // a token that is spelled so
  // A text that goes on after another.
  std::function<std::string(std::span<const std::int32_t> before, std::span<const std::int32_t> tokens)> decode_after;
  // Of one text's tokens in turn: what is complete, and behind the last one the rest.
  std::function<std::string(std::int32_t)> decode_next;
  std::function<std::string()> decode_rest;
};

// `folder`: the model's.
TextCoding coding_of(const LanguageOptions& options, const trireme::Location& folder);
