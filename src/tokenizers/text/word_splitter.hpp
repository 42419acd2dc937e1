#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

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
    std::size_t begin = 0;
    const auto finish = [&](std::size_t end) {
      if (begin < end) visit(Range{.begin = static_cast<std::int64_t>(begin), .end = static_cast<std::int64_t>(end)});
    };
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t next = at + size_of_character(text[at]);
      const char32_t character = character_at(text.data() + at);
      const bool is_sign = is_punctuation(character);
      if (is_sign || is_white_space(character)) {
        finish(at);
        begin = is_sign ? at : next;
        if (is_sign) finish(next);
        begin = next;
      }
      at = next;
    }
    finish(text.size());
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
