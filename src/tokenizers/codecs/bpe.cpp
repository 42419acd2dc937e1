#include "tokenizers/codecs/bpe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "tokenizers/text/utf8.hpp"
#include "trireme/core/error.hpp"

namespace trireme::tokenizers {
namespace {

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
      whole_(static_cast<std::size_t>(tokens_->size())) {
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

void Bpe::encode_word(std::string_view word, std::vector<std::int32_t>& tokens, std::vector<std::int32_t>* sizes) const {
  static thread_local std::vector<Symbol> symbols;
  if (word.size() <= WordKey::most_bytes) {
    if (const std::int32_t whole = whole_.find(WordKey(word)); whole >= 0) {
      tokens.push_back(whole);
      if (sizes != nullptr) sizes->push_back(static_cast<std::int32_t>(word.size()));
      return;
    }
  }
  merge(word, symbols);
  for (const Symbol& symbol : symbols) {
    tokens.push_back(symbol.token);
    if (sizes != nullptr) sizes->push_back(symbol.bytes);
  }
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
