#include "trireme/data/documents/documents.hpp"

#include <fmt/format.h>

#include <cstddef>

#include "trireme/core/error.hpp"
#include "trireme/data/text/text_batch.hpp"
#include "trireme/files/file_content.hpp"

namespace trireme::data {
namespace {

void append(std::span<const std::int32_t> more, std::vector<std::int32_t>& all) {
  const std::vector<std::int32_t> own(more.begin(), more.end());  // a copy, since `more` may lie in `all`, which reallocates
  all.insert(all.end(), own.begin(), own.end());
}

}  // namespace

void Documents::add(std::span<const std::int32_t> tokens) {
  require(!tokens.empty(), "document {} has no tokens", size());
  std::vector<std::int32_t> targets(tokens.begin() + 1, tokens.end());
  targets.push_back(no_target);
  add({.tokens = tokens, .targets = targets});
}

void Documents::add(const Document& document) {
  const auto& [tokens, targets] = document;
  require(!tokens.empty(), "document {} has no tokens", size());
  require(tokens.size() == targets.size(), "document {} has {} tokens and {} targets", size(), tokens.size(), targets.size());
  append(tokens, tokens_);
  append(targets, targets_);
  ends_.push_back(num_tokens());
}

Documents::Document Documents::operator[](std::int64_t index) const {
  require(index >= 0 && index < size(), "document {} does not exist among {} documents", index, size());
  const auto place = static_cast<std::size_t>(index);
  const std::int64_t begin = place == 0 ? 0 : ends_[place - 1];
  const auto count = static_cast<std::size_t>(ends_[place] - begin);
  return {.tokens = std::span(tokens_).subspan(static_cast<std::size_t>(begin), count),
          .targets = std::span(targets_).subspan(static_cast<std::size_t>(begin), count)};
}

std::string content_of(const Documents& documents) {
  std::uint64_t sum = 0;
  for (std::int64_t number = 0; number < documents.size(); ++number) {
    const auto [tokens, targets] = documents[number];
    sum = 31 * (31 * sum + digest_of_bytes(std::as_bytes(tokens))) + digest_of_bytes(std::as_bytes(targets));
  }
  return fmt::format("{} documents of {} tokens, digest {:016x}", documents.size(), documents.num_tokens(), sum);
}

}  // namespace trireme::data
