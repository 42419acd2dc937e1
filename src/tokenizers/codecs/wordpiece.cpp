#include "tokenizers/codecs/wordpiece.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "tokenizers/text/utf8.hpp"
#include "trireme/core/error.hpp"

namespace trireme::tokenizers {
namespace {

constexpr std::int32_t begin_of_word = 0;
constexpr std::int32_t within_word = 1;

std::uint64_t key_of(std::int32_t node, char byte) {
  return static_cast<std::uint64_t>(node) * 256 + static_cast<unsigned char>(byte);
}

std::size_t place_of(std::uint64_t key, std::size_t size) {
  return (key * 0x9E3779B97F4A7C15u) >> (64 - std::countr_zero(size));
}

}  // namespace

WordPiece::WordPiece(std::shared_ptr<const TokenSpellings> tokens, const WordPieceOptions& options)
    : tokens_(std::move(tokens)), edges_(1024), most_characters_(options.most_characters) {
  const auto unknown = tokens_->find(options.unknown);
  require(unknown.has_value(), "the vocabulary has no token {} for unknown words", options.unknown);
  unknown_ = *unknown;
  for (std::int32_t token = 0; token < tokens_->size(); ++token) {
    if (!tokens_->has(token)) continue;
    const std::string_view text = tokens_->text(token);
    add(text, begin_of_word, token);
    if (text.starts_with(options.continuing_prefix)) add(text.substr(options.continuing_prefix.size()), within_word, token);
  }
}

void WordPiece::add(std::string_view text, std::int32_t from, std::int32_t token) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    Edge& next = edge(from, text[at]);
    from = next.to;
    if (at + 1 == text.size()) next.token = token;
  }
}

const WordPiece::Edge* WordPiece::find(std::int32_t node, char byte) const {
  const std::uint64_t key = key_of(node, byte);
  for (std::size_t at = place_of(key, edges_.size());; at = (at + 1) & (edges_.size() - 1)) {
    if (edges_[at].from == key) return &edges_[at];
    if (edges_[at].from == Edge().from) return nullptr;
  }
}

WordPiece::Edge& WordPiece::edge(std::int32_t node, char byte) {
  if (2 * count_ >= edges_.size()) grow();
  const std::uint64_t key = key_of(node, byte);
  std::size_t at = place_of(key, edges_.size());
  while (edges_[at].from != key && edges_[at].from != Edge().from) at = (at + 1) & (edges_.size() - 1);
  if (edges_[at].from != key) {
    edges_[at] = {.from = key, .to = nodes_++};
    ++count_;
  }
  return edges_[at];
}

void WordPiece::grow() {
  std::vector<Edge> larger(2 * edges_.size());
  for (const Edge& each : edges_) {
    if (each.from == Edge().from) continue;
    std::size_t at = place_of(each.from, larger.size());
    while (larger[at].from != Edge().from) at = (at + 1) & (larger.size() - 1);
    larger[at] = each;
  }
  edges_ = std::move(larger);
}

void WordPiece::encode_word(std::string_view word, std::vector<std::int32_t>& tokens, std::vector<std::int32_t>* sizes) const {
  const std::size_t before = tokens.size(), sizes_before = sizes == nullptr ? 0 : sizes->size();
  const auto give_up = [&] {
    tokens.resize(before);
    tokens.push_back(unknown_);
    if (sizes == nullptr) return;
    sizes->resize(sizes_before);
    sizes->push_back(static_cast<std::int32_t>(word.size()));
  };
  const auto is_first_byte = [](char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; };
  if (std::ssize(word) > most_characters_ && std::ranges::count_if(word, is_first_byte) > most_characters_) return give_up();
  for (std::size_t begin = 0; begin < word.size();) {
    std::int32_t node = begin == 0 ? begin_of_word : within_word, longest = -1;
    std::size_t end = begin;
    for (std::size_t at = begin; at < word.size(); ++at) {
      const Edge* const next = find(node, word[at]);
      if (next == nullptr) break;
      node = next->to;
      if (next->token >= 0) {
        longest = next->token;
        end = at + 1;
      }
    }
    if (longest < 0) return give_up();
    tokens.push_back(longest);
    if (sizes != nullptr) sizes->push_back(static_cast<std::int32_t>(end - begin));
    begin = end;
  }
}

}  // namespace trireme::tokenizers
