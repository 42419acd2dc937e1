#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "tokenizers/text/byte_kinds.hpp"
#include "tokenizers/text/characters.hpp"
#include "tokenizers/text/regex.hpp"
#include "tokenizers/text/utf8.hpp"

namespace trireme::tokenizers {

// Splits a text into matches and the text between them; with `drops_others` drops the text between.
struct SplitByRegex {
  Regex regex;
  bool drops_others = false;

  template <typename Visit>
  void split(std::string_view text, const Visit& visit) const {
    std::int64_t done = 0;
    regex.for_matches(text, [&](const Range& match) {
      if (match.begin > done && !drops_others) visit(Range{.begin = done, .end = match.begin});
      visit(match);
      done = match.end;
    });
    const auto size = static_cast<std::int64_t>(text.size());
    if (done < size && !drops_others) visit(Range{.begin = done, .end = size});
  }
};

// Splits before each occurrence of `begin`, such as sentencepiece's U+2581, which begins words. With `runs`, adjacent
// occurrences begin one part together.
struct SplitBefore {
  std::string begin;
  bool runs = false;

  template <typename Visit>
  void split(std::string_view text, const Visit& visit) const {
    std::size_t done = 0, behind = 0;  // begin of the part, end of the last occurrence
    for (std::size_t at = next_of(begin, text, 0); at != std::string_view::npos; at = next_of(begin, text, behind)) {
      const bool begins_part = at > done && !(runs && at == behind);
      behind = at + begin.size();
      if (!begins_part) continue;
      visit(Range{.begin = static_cast<std::int64_t>(done), .end = static_cast<std::int64_t>(at)});
      done = at;
    }
    if (done == text.size()) return;
    visit(Range{.begin = static_cast<std::int64_t>(done), .end = static_cast<std::int64_t>(text.size())});
  }
};

// Splits at white space; each punctuation character is a word of its own.
struct SplitLikeBert {
  template <typename Visit>
  void split(std::string_view text, const Visit& visit) const {
    const auto found = [&](std::size_t begin, std::size_t end) {
      visit(Range{.begin = static_cast<std::int64_t>(begin), .end = static_cast<std::int64_t>(end)});
    };
    for (std::size_t at = 0; at < text.size();) {
      const bool has_many = at + ByteKinds::bytes <= text.size() && static_cast<unsigned char>(text[at] | text[at + 1]) < 0x80;
      if (const std::size_t done = has_many ? split_block(text, at, found) : 0) {
        at += done;
        continue;
      }
      const std::size_t begin = at;
      const char32_t first = character_at(text.data() + at);
      at += size_of_character(text[at]);
      if (is_white_space(first)) continue;
      if (!is_punctuation(first)) at = end_of_word(text, at);
      found(begin, at);
    }
  }

 private:
  // Splits the ASCII characters among the 64 bytes from `from` on. Returns how many bytes are done, at the end of a word: 0 if
  // the first word may not end in these bytes.
  template <typename Found>
  static std::size_t split_block(std::string_view text, std::size_t from, const Found& found) {
    const ByteKinds kinds(text.data() + from);
    const std::uint64_t signs = kinds.others() & ~kinds.controls, inside = ~(signs | kinds.spaces | kinds.beyond);
    // A word ends where the next byte is ASCII, and no part of it. Words and their ends come in the same order.
    std::uint64_t begins = signs | (inside & ~(inside << 1));
    std::uint64_t lasts = (signs | (inside & ~(inside >> 1))) & ~(kinds.beyond >> 1) & ~std::uint64_t{0} >> 1;
    lasts &= (kinds.beyond & (~kinds.beyond + 1)) - 1;
    if (lasts == 0) return static_cast<std::size_t>(std::countr_one(kinds.spaces));
    std::size_t end = 0;
    for (; lasts != 0; lasts &= lasts - 1, begins &= begins - 1) {
      end = from + static_cast<std::size_t>(std::countr_zero(lasts)) + 1;
      found(from + static_cast<std::size_t>(std::countr_zero(begins)), end);
    }
    return end - from;
  }

  static std::size_t end_of_word(std::string_view text, std::size_t at) {
    while (at < text.size()) {
      const char32_t character = character_at(text.data() + at);
      if (is_white_space(character) || is_punctuation(character)) break;
      at += size_of_character(text[at]);
    }
    return at;
  }
};

// Splits a text into words: each rule splits the parts of the previous one.
class WordSplitter {
 public:
  using Rule = std::variant<SplitByRegex, SplitBefore, SplitLikeBert>;

  bool is_empty() const { return rules_.empty(); }
  void add(Rule rule) { rules_.push_back(std::move(rule)); }

  // Calls visit(Range) for each word, from left to right.
  template <typename Visit>
  void split(std::string_view text, const Visit& visit) const {
    if (rules_.size() == 1) return std::visit([&](const auto& only) { only.split(text, visit); }, rules_[0]);
    if (!text.empty()) split(0, text, {.begin = 0, .end = static_cast<std::int64_t>(text.size())}, visit);
  }

 private:
  template <typename Visit>
  void split(std::size_t rule, std::string_view text, const Range& part, const Visit& visit) const {
    if (rule == rules_.size()) {
      visit(part);
      return;
    }
    const auto visit_smaller = [&](const Range& smaller) {
      split(rule + 1, text, {.begin = part.begin + smaller.begin, .end = part.begin + smaller.end}, visit);
    };
    const std::string_view whole = text.substr(static_cast<std::size_t>(part.begin), static_cast<std::size_t>(part.count()));
    std::visit([&](const auto& each) { each.split(whole, visit_smaller); }, rules_[rule]);
  }

  std::vector<Rule> rules_;
};

}  // namespace trireme::tokenizers
