#include "tokenizers/added_tokens.hpp"

#include <algorithm>
#include <cstring>

#include "tokenizers/characters.hpp"
#include "tokenizers/utf8.hpp"

namespace trireme::tokenizers {
namespace {

std::size_t begin_of_white_space(std::string_view text) {
  std::size_t end = text.size();
  while (end > 0) {
    std::size_t at = end - 1;
    while ((static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
    if (!is_white_space(character_at(text.data() + at))) break;
    end = at;
  }
  return end;
}

std::size_t end_of_white_space(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size() && is_white_space(character_at(text.data() + at))) at += size_of_character(text[at]);
  return at;
}

}  // namespace

void AddedTokenFinder::add(const AddedToken& token) {
  auto& same_begin = of_byte_[static_cast<unsigned char>(token.content[0])];
  if (same_begin.empty()) first_bytes_ += token.content[0];
  const auto is_longer = [&](const AddedToken& each) { return each.content.size() >= token.content.size(); };
  same_begin.insert(std::ranges::find_if_not(same_begin, is_longer), token);
}

std::size_t AddedTokenFinder::next_first_byte(std::string_view whole, std::size_t from) const {
  if (first_bytes_.size() == 1) return std::min(whole.find(first_bytes_[0], from), whole.size());
  while (from < whole.size() && of_byte_[static_cast<unsigned char>(whole[from])].empty()) ++from;
  return from;
}

AddedTokenFinder::Found AddedTokenFinder::next(std::string_view whole, std::size_t from) const {
  for (std::size_t at = next_first_byte(whole, from); at < whole.size(); at = next_first_byte(whole, at + 1)) {
    const std::string_view rest = whole.substr(at);
    for (const AddedToken& token : of_byte_[static_cast<unsigned char>(whole[at])]) {
      if (!rest.starts_with(token.content)) continue;
      return {
          .token = &token, .begin = static_cast<std::int64_t>(at), .end = static_cast<std::int64_t>(at + token.content.size())};
    }
  }
  return {};
}

// With the white space that a token takes along, as far as no other did before.
Range AddedTokenFinder::widened(std::string_view whole, const Found& found, std::int64_t done) {
  Range place{.begin = found.begin, .end = found.end};
  if (found.token->strips_left) {
    const auto before = whole.substr(0, static_cast<std::size_t>(found.begin));
    place.begin = std::max(done, static_cast<std::int64_t>(begin_of_white_space(before)));
  }
  if (found.token->strips_right) {
    place.end += static_cast<std::int64_t>(end_of_white_space(whole.substr(static_cast<std::size_t>(found.end))));
  }
  return place;
}

}  // namespace trireme::tokenizers
