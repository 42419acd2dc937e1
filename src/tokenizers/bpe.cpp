#include "tokenizers/bpe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "tokenizers/utf8.hpp"
#include "tokenizers/word_cache.hpp"
#include "trireme/core/error.hpp"

namespace trireme::tokenizers {
namespace {

std::uint32_t next_number() {
  static std::atomic<std::uint32_t> last{0};
  return ++last;
}

WordCache& cache_of_thread() {
  static thread_local WordCache cache;
  return cache;
}

[[noreturn]] void refuse(std::string_view word, const std::string& part) {
  throw Error({.code = ErrorCode::invalid_argument,
               .message = fmt::format("the tokenizer has no token for {} of the word \"{}\", and none for what is unknown",
                                      part, shown(word.substr(0, 100))),
               .hint = "leave it out of the text, or train the tokenizer with all bytes in its first alphabet"});
}

}  // namespace

Bpe::Bpe(std::shared_ptr<const TokenSpellings> tokens, Merges merges, const BpeOptions& options)
    : tokens_(std::move(tokens)),
      merges_(std::move(merges)),
      options_(options),
      whole_(static_cast<std::size_t>(tokens_->size())),
      number_(next_number()) {
  for (std::size_t byte = 0; byte < bytes_.size(); ++byte) {
    const std::string itself(1, static_cast<char>(byte));
    bytes_[byte] = tokens_->find(options_.byte_level ? itself : fmt::format("<0x{:02X}>", byte)).value_or(-1);
  }
  for (std::int32_t token = 0; token < tokens_->size(); ++token) {
    const bool is_short = tokens_->has(token) && tokens_->text(token).size() <= WordKey::most_bytes;
    if (is_short && (options_.ignore_merges || comes_of_merges(token))) whole_.add(WordKey(tokens_->text(token)), token);
  }
}

// Whether a word that is spelled as the token becomes it.
bool Bpe::comes_of_merges(std::int32_t token) const {
  const std::string& text = tokens_->text(token);
  const auto is_known = [this](char byte) { return bytes_[static_cast<unsigned char>(byte)] >= 0; };
  if (text.empty() || !options_.byte_level || !std::ranges::all_of(text, is_known)) return false;
  std::vector<Symbol> symbols;
  begin_with_bytes(text, symbols);
  merges_.apply(symbols);
  return symbols.size() == 1 && symbols[0].token == token;
}

void Bpe::encode(std::string_view word, std::vector<std::int32_t>& tokens, std::vector<std::int32_t>* sizes) const {
  static thread_local std::vector<Symbol> symbols;
  const auto add_merged = [&] {
    symbols.clear();
    merge(word, symbols);
    for (const Symbol& symbol : symbols) {
      tokens.push_back(symbol.token);
      if (sizes != nullptr) sizes->push_back(symbol.bytes);
    }
  };
  if (sizes != nullptr || word.size() > WordKey::most_bytes) return add_merged();
  const WordKey key(word);
  WordCache::Entry& entry = cache_of_thread().entry_of(key);
  if (entry.model != number_ || entry.word != key) {
    if (const std::int32_t whole = whole_.find(key); whole >= 0) {
      entry = {.word = key, .model = number_, .count = 1, .tokens = {whole}};
    } else {
      const std::size_t before = tokens.size();
      add_merged();
      if (symbols.size() > WordCache::most_tokens) return;
      entry.word = key;
      entry.model = number_;
      entry.count = static_cast<std::uint32_t>(symbols.size());
      std::copy(tokens.begin() + static_cast<std::ptrdiff_t>(before), tokens.end(), entry.tokens.begin());
      return;
    }
  }
  if (entry.count == 1) {
    tokens.push_back(entry.tokens[0]);
  } else {
    tokens.insert(tokens.end(), entry.tokens.begin(), entry.tokens.begin() + entry.count);
  }
}

void Bpe::merge(std::string_view word, std::vector<Symbol>& symbols) const {
  if (options_.ignore_merges) {
    if (const auto whole = tokens_->find(word)) {
      symbols.push_back({.token = *whole, .bytes = static_cast<std::int32_t>(word.size())});
      return;
    }
  }
  if (options_.byte_level) {
    begin_with_bytes(word, symbols);
  } else {
    begin_with_characters(word, symbols);
  }
  merges_.apply(symbols);
}

void Bpe::begin_with_bytes(std::string_view word, std::vector<Symbol>& symbols) const {
  bool was_unknown = false;
  for (const char character : word) {
    const auto byte = static_cast<unsigned char>(character);
    const bool is_unknown = bytes_[byte] < 0;
    if (is_unknown && !options_.unknown) refuse(word, fmt::format("the byte 0x{:02X}", byte));
    if (is_unknown && options_.fuse_unknown && was_unknown) {
      ++symbols.back().bytes;
    } else {
      symbols.push_back({.token = is_unknown ? *options_.unknown : bytes_[byte], .bytes = 1});
    }
    was_unknown = is_unknown;
  }
}

void Bpe::begin_with_characters(std::string_view word, std::vector<Symbol>& symbols) const {
  bool was_unknown = false;
  for (std::size_t at = 0; at < word.size();) {
    const std::string_view character = word.substr(at, size_of_character(word[at]));
    at += character.size();
    const auto bytes = static_cast<std::int32_t>(character.size());
    const bool fuses = std::exchange(was_unknown, false) && options_.fuse_unknown;
    if (const auto token = tokens_->find(character)) {
      symbols.push_back({.token = *token, .bytes = bytes});
      continue;
    }
    const auto token_of = [this](char byte) { return bytes_[static_cast<unsigned char>(byte)]; };
    if (options_.byte_fallback && std::ranges::all_of(character, [&](char byte) { return token_of(byte) >= 0; })) {
      for (const char byte : character) symbols.push_back({.token = token_of(byte), .bytes = 1});
      continue;
    }
    if (!options_.unknown) refuse(word, fmt::format("\"{}\"", character));
    was_unknown = true;
    if (fuses) {
      symbols.back().bytes += bytes;
    } else {
      symbols.push_back({.token = *options_.unknown, .bytes = bytes});
    }
  }
}

}  // namespace trireme::tokenizers
