#include "tokenizers/codecs/added_tokens.hpp"

#include <algorithm>
#include <functional>

#include "tokenizers/text/characters.hpp"
#include "tokenizers/text/utf8.hpp"

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
  Group& group = groups_[static_cast<unsigned char>(token.content[0])];
  if (group.tokens.empty()) first_bytes_ += token.content[0];
  group.tokens.emplace(token.content, token);
  const std::size_t length = token.content.size();
  const auto place = std::ranges::lower_bound(group.lengths, length, std::greater<>());
  if (place == group.lengths.end() || *place != length) group.lengths.insert(place, length);
}

std::size_t AddedTokenFinder::next_first_byte(std::string_view whole, std::size_t from) const {
  if (first_bytes_.size() == 1) return std::min(whole.find(first_bytes_[0], from), whole.size());
  while (from < whole.size() && groups_[static_cast<unsigned char>(whole[from])].tokens.empty()) ++from;
  return from;
}

AddedTokenFinder::Found AddedTokenFinder::next(std::string_view whole, std::size_t from) const {
  for (std::size_t at = next_first_byte(whole, from); at < whole.size(); at = next_first_byte(whole, at + 1)) {
    const Group& group = groups_[static_cast<unsigned char>(whole[at])];
    for (const std::size_t length : group.lengths) {
      const auto token = group.tokens.find(whole.substr(at, length));
      if (token == group.tokens.end()) continue;
      return {.token = &token->second,
              .begin = static_cast<std::int64_t>(at),
              .end = static_cast<std::int64_t>(at + token->first.size())};
    }
  }
  return {};
}

// The place of a token with the white space that it includes, unless an earlier token has included that.
Range AddedTokenFinder::widened(std::string_view whole, const Found& found, std::int64_t done) {
  Range place{.begin = found.begin, .end = found.end};
  if (found.token->strips_left) {
    const std::int64_t between = std::max<std::int64_t>(0, found.begin - done);
    const auto before = whole.substr(static_cast<std::size_t>(done), static_cast<std::size_t>(between));
    place.begin = done + static_cast<std::int64_t>(begin_of_white_space(before));
  }
  if (found.token->strips_right) {
    place.end += static_cast<std::int64_t>(end_of_white_space(whole.substr(static_cast<std::size_t>(found.end))));
  }
  return place;
}

}  // namespace trireme::tokenizers
