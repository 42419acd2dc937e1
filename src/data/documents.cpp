#include "trireme/data/documents.hpp"

#include <cstddef>

#include "trireme/core/error.hpp"
#include "trireme/data/text_batch.hpp"

namespace trireme::data {

void Documents::add(std::span<const std::int32_t> tokens) {
  require(!tokens.empty(), "document {} has no tokens", size());
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  targets_.insert(targets_.end(), tokens.begin() + 1, tokens.end());
  targets_.push_back(no_target);
  ends_.push_back(num_tokens());
}

void Documents::add(const Document& document) {
  const auto& [tokens, targets] = document;
  require(!tokens.empty(), "document {} has no tokens", size());
  require(tokens.size() == targets.size(), "document {} has {} tokens and {} targets", size(), tokens.size(), targets.size());
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  targets_.insert(targets_.end(), targets.begin(), targets.end());
  ends_.push_back(num_tokens());
}

Documents::Document Documents::operator[](std::int64_t index) const {
  require(index >= 0 && index < size(), "document {} of {}", index, size());
  const auto place = static_cast<std::size_t>(index);
  const std::int64_t begin = place == 0 ? 0 : ends_[place - 1];
  const auto count = static_cast<std::size_t>(ends_[place] - begin);
  return {.tokens = std::span(tokens_).subspan(static_cast<std::size_t>(begin), count),
          .targets = std::span(targets_).subspan(static_cast<std::size_t>(begin), count)};
}

}  // namespace trireme::data
