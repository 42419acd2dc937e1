#include "tokenizers/codecs/token_spellings.hpp"

#include <utility>

#include "tokenizers/text/utf8.hpp"
#include "trireme/core/error.hpp"

namespace trireme::tokenizers {

void TokenSpellings::add(std::string text, std::int64_t number) {
  const std::int64_t most = 2 * count_ + 4096;
  require(number >= 0 && number < most, "the token {} has the number {}, but {} tokens are numbered from 0, with few holes",
          shown(text), number, count_);
  if (number >= size()) {
    texts_.resize(static_cast<std::size_t>(number) + 1);
    has_.resize(texts_.size());
  }
  const auto place = static_cast<std::size_t>(number);
  require(!has_[place], "the tokens {} and {} have the same number, {}", shown(texts_[place]), shown(text), number);
  const bool is_first = numbers_.emplace(text, static_cast<std::int32_t>(number)).second;
  require(is_first, "the token {} has two numbers; one is {}", shown(text), number);
  texts_[place] = std::move(text);
  has_[place] = true;
}

std::optional<std::int32_t> TokenSpellings::find(std::string_view text) const {
  const auto found = numbers_.find(text);
  return found == numbers_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace trireme::tokenizers
