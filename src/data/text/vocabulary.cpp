#include "trireme/data/text/vocabulary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <set>
#include <utility>

#include "trireme/core/error.hpp"

namespace trireme::data {
namespace {

constexpr std::string_view end_of_line = "<eos>";
constexpr std::string_view unknown = "<unk>";
constexpr std::string_view spaces = " \t\r\v\f";
constexpr std::string_view of_words = "words";
constexpr std::string_view of_characters = "characters";

// Calls visit(word) for each word of the text and for each end of a line.
template <typename Visit>
void for_words(std::string_view text, const Visit& visit) {
  std::size_t at = 0;
  while (at < text.size()) {
    if (text[at] == '\n') {
      visit(end_of_line);
      ++at;
    } else if (spaces.find(text[at]) != std::string_view::npos) {
      ++at;
    } else {
      const std::size_t end = std::min(text.find_first_of(" \t\r\v\f\n", at), text.size());
      visit(text.substr(at, end - at));
      at = end;
    }
  }
}

// A token in to_text(): letters, digits and ASCII signs unchanged, other bytes in the form %0A.
std::string escaped(std::string_view token) {
  std::string text;
  for (const char character : token) {
    if (character > ' ' && character < 127 && character != '%') {
      text += character;
    } else {
      fmt::format_to(std::back_inserter(text), "%{:02X}", static_cast<unsigned char>(character));
    }
  }
  return text;
}

std::string unescaped(std::string_view text) {
  std::string token;
  for (std::size_t at = 0; at < text.size(); ++at) {
    unsigned byte = static_cast<unsigned char>(text[at]);
    if (text[at] == '%') {
      const std::string_view digits = text.substr(at + 1, 2);
      std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
      at += 2;
    }
    token += static_cast<char>(byte);
  }
  return token;
}

}  // namespace

Vocabulary::Vocabulary(bool words, std::vector<std::string> tokens) : words_(words), tokens_(std::move(tokens)) {
  for (std::size_t number = 0; number < tokens_.size(); ++number) {
    numbers_.emplace(tokens_[number], static_cast<std::int32_t>(number));
  }
}

Vocabulary Vocabulary::characters(std::string_view text) {
  const std::set<unsigned char> different(text.begin(), text.end());
  std::vector<std::string> tokens;
  for (const unsigned char character : different) tokens.emplace_back(1, static_cast<char>(character));
  return {false, std::move(tokens)};
}

Vocabulary Vocabulary::words(std::string_view text, std::int64_t largest) {
  require(largest >= 2, "a vocabulary of words has <unk> and at least one more token, got {} in all", largest);
  std::map<std::string_view, std::int64_t> counts;
  for_words(text, [&](std::string_view word) { ++counts[word]; });
  counts.try_emplace(unknown, 0);
  std::vector<std::pair<std::string_view, std::int64_t>> ordered(counts.begin(), counts.end());
  // <unk> comes first, so that resize() keeps it.
  std::ranges::stable_sort(
      ordered, [](const auto& a, const auto& b) { return a.first == unknown || (b.first != unknown && a.second > b.second); });
  if (ordered.size() > static_cast<std::size_t>(largest)) ordered.resize(static_cast<std::size_t>(largest));
  std::vector<std::string> tokens;
  for (const auto& [word, count] : ordered) tokens.emplace_back(word);
  return {true, std::move(tokens)};
}

std::vector<std::int32_t> Vocabulary::encode(std::string_view text) const {
  std::vector<std::int32_t> tokens;
  if (words_) {
    const std::int32_t otherwise = numbers_.find(unknown)->second;
    for_words(text, [&](std::string_view word) {
      const auto found = numbers_.find(word);
      tokens.push_back(found == numbers_.end() ? otherwise : found->second);
    });
    return tokens;
  }
  tokens.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    const auto found = numbers_.find(text.substr(at, 1));
    require(found != numbers_.end(), "the vocabulary has no character for the byte {} at {}",
            static_cast<unsigned char>(text[at]), at);
    tokens.push_back(found->second);
  }
  return tokens;
}

std::string Vocabulary::decode(std::span<const std::int32_t> tokens) const {
  std::string text;
  for (const std::int32_t token : tokens) {
    require(token >= 0 && token < size(), "the token {} does not lie in [0, {})", token, size());
    const std::string& word = tokens_[static_cast<std::size_t>(token)];
    if (!words_) {
      text += word;
    } else if (word == end_of_line) {
      text += '\n';
    } else {
      if (!text.empty() && text.back() != '\n') text += ' ';
      text += word;
    }
  }
  return text;
}

std::string Vocabulary::to_text() const {
  std::string text(words_ ? of_words : of_characters);
  for (const std::string& token : tokens_) {
    text += ' ';
    text += escaped(token);
  }
  return text;
}

Vocabulary Vocabulary::from_text(std::string_view text) {
  std::vector<std::string> tokens;
  std::size_t at = std::min(text.find(' '), text.size());
  const std::string_view kind = text.substr(0, at);
  while (at < text.size()) {
    const std::size_t end = std::min(text.find(' ', at + 1), text.size());
    tokens.push_back(unescaped(text.substr(at + 1, end - at - 1)));
    at = end;
  }
  Vocabulary result(kind == of_words, std::move(tokens));
  const bool whole = std::ranges::all_of(
      result.tokens_, [&](const std::string& token) { return result.words_ ? !token.empty() : token.size() == 1; });
  const bool usable = !result.words_ || result.numbers_.contains(unknown);
  require(whole && usable && result.numbers_.size() == result.tokens_.size() && result.to_text() == text,
          "a text of {} bytes is not a vocabulary that trireme wrote", text.size());
  return result;
}

}  // namespace trireme::data
