#include "tokenizers/codecs/bpe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "tokenizers/text/utf8.hpp"
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
               .message = fmt::format("the tokenizer has no token for {} of the word \"{}\", and none for unknown text", part,
                                      shown(word.substr(0, 100))),
               .hint = "leave it out of the text, or train the tokenizer with all bytes in its initial alphabet"});
}

// The tokens that are a single character.
WordTable characters_of(const TokenSpellings& tokens) {
  std::vector<std::int32_t> characters;
  for (std::int32_t token = 0; token < tokens.size(); ++token) {
    const std::string& text = tokens.text(token);
    if (tokens.has(token) && !text.empty() && size_of_character(text[0]) == text.size()) characters.push_back(token);
  }
  WordTable table(characters.size());
  for (const std::int32_t token : characters) table.add(WordKey(tokens.text(token)), token);
  return table;
}

}  // namespace

Bpe::Bpe(std::shared_ptr<const TokenSpellings> tokens, Merges merges, const BpeOptions& options)
    : tokens_(std::move(tokens)),
      merges_(std::move(merges)),
      options_(options),
      characters_(options.byte_level ? WordTable(0) : characters_of(*tokens_)),
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

// Whether a word with the token's spelling is merged into this token.
bool Bpe::comes_of_merges(std::int32_t token) const {
  const std::string& text = tokens_->text(token);
  if (text.empty() || !is_known(text)) return false;
  std::vector<Symbol> symbols;
  begin(text, symbols);
  merges_.apply(symbols);
  return symbols.size() == 1 && symbols[0].token == token;
}

// Whether all bytes or characters of a word have a token.
bool Bpe::is_known(std::string_view word) const {
  if (options_.byte_level) {
    return std::ranges::all_of(word, [this](char byte) { return bytes_[static_cast<unsigned char>(byte)] >= 0; });
  }
  for (std::size_t at = 0; at < word.size(); at += size_of_character(word[at])) {
    if (characters_.find(WordKey(word.substr(at, size_of_character(word[at])))) < 0) return false;
  }
  return true;
}

void Bpe::encode(std::string_view text, std::span<const Range> words, std::vector<std::int32_t>& tokens,
                 std::vector<std::int32_t>* sizes) const {
  static thread_local std::vector<Symbol> symbols;
  if (sizes != nullptr) {
    for (const Range& word : words) {
      merge(part_of(text, word), symbols);
      for (const Symbol& symbol : symbols) {
        tokens.push_back(symbol.token);
        sizes->push_back(symbol.bytes);
      }
    }
    return;
  }
  require(words.size() <= most_words, "a model encodes {} words at once, not {}", most_words, words.size());
  // Prefetches all cache entries before it reads the first, since most are not in the processor's cache.
  WordCache& cache = cache_of_thread();
  std::array<WordKey, most_words> keys;
  std::array<WordCache::Entry*, most_words> entries;
  for (std::size_t at = 0; at < words.size(); ++at) {
    const std::string_view word = part_of(text, words[at]);
    entries[at] = nullptr;
    if (word.size() > WordKey::most_bytes) continue;
    // In place: a copy would have to wait until its parts are stored.
    std::construct_at(&keys[at], word, text.size() - static_cast<std::size_t>(words[at].begin));
    entries[at] = cache.entries_of(keys[at]);
    __builtin_prefetch(entries[at], 1);
  }
  std::array<std::int32_t, most_words * WordCache::most_tokens> found;
  std::size_t count = 0;
  for (std::size_t at = 0; at < words.size(); ++at) {
    const std::string_view word = part_of(text, words[at]);
    WordCache::Entry* entry = entries[at];
    bool is_there = entry != nullptr && holds(*entry, keys[at]);
    if (!is_there && entry != nullptr && holds(entry[1], keys[at])) {
      is_there = true;
      ++entry;
    }
    if (is_there || fill(entry, keys[at], word, symbols)) {
      std::copy_n(entry->tokens.begin(), WordCache::most_tokens, found.begin() + static_cast<std::ptrdiff_t>(count));
      count += entry->count;
    } else {
      tokens.insert(tokens.end(), found.begin(), found.begin() + static_cast<std::ptrdiff_t>(std::exchange(count, 0)));
      for (const Symbol& symbol : symbols) tokens.push_back(symbol.token);
    }
  }
  tokens.insert(tokens.end(), found.begin(), found.begin() + static_cast<std::ptrdiff_t>(count));
}

bool Bpe::holds(const WordCache::Entry& entry, const WordKey& word) const {
  return entry.model == number_ && entry.word == word;
}

// Puts a word's tokens into an entry, whose former content goes to the next one. Returns false if there is no entry or they do
// not fit; then they are in `symbols`.
bool Bpe::fill(WordCache::Entry* entry, const WordKey& key, std::string_view word, std::vector<Symbol>& symbols) const {
  if (entry != nullptr) {
    if (const std::int32_t whole = whole_.find(key); whole >= 0) {
      entry[1] = entry[0];
      *entry = {.word = key, .model = number_, .count = 1, .tokens = {whole}};
      return true;
    }
  }
  merge(word, symbols);
  if (entry == nullptr || symbols.size() > WordCache::most_tokens) return false;
  entry[1] = entry[0];
  *entry = {.word = key, .model = number_, .count = static_cast<std::uint32_t>(symbols.size())};
  std::ranges::transform(symbols, entry->tokens.begin(), &Symbol::token);
  return true;
}

void Bpe::merge(std::string_view word, std::vector<Symbol>& symbols) const {
  symbols.clear();
  if (options_.ignore_merges) {
    if (const auto whole = tokens_->find(word)) {
      symbols.push_back({.token = *whole, .bytes = static_cast<std::int32_t>(word.size())});
      return;
    }
  }
  begin(word, symbols);
  merges_.apply(symbols);
}

void Bpe::begin(std::string_view word, std::vector<Symbol>& symbols) const {
  if (options_.byte_level) {
    begin_with_bytes(word, symbols);
  } else {
    begin_with_characters(word, symbols);
  }
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
    if (const std::int32_t token = characters_.find(WordKey(character)); token >= 0) {
      symbols.push_back({.token = token, .bytes = bytes});
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
