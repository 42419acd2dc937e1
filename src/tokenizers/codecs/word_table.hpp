#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "tokenizers/codecs/word_key.hpp"

namespace trireme::tokenizers {

// A hash table from words that are a token to the token's number.
class WordTable {
 public:
  // Reserves space for `count` words.
  explicit WordTable(std::size_t count)
      : tags_(std::bit_ceil(2 * count + 2)), entries_(tags_.size()), shift_(64 - std::countr_zero(tags_.size())) {}

  void add(const WordKey& word, std::int32_t token) {
    const std::uint64_t hash = word.hash();
    const std::size_t at = place_of(word, hash);
    tags_[at] = tag_of(hash);
    entries_[at] = {.word = word, .token = token};
  }

  // Returns -1 if the word is not a token.
  std::int32_t find(const WordKey& word) const {
    const std::size_t at = place_of(word, word.hash());
    return tags_[at] == 0 ? -1 : entries_[at].token;
  }

 private:
  struct Entry {
    WordKey word;
    std::int32_t token = 0;
  };

  // Never 0, which marks a free place.
  static std::uint32_t tag_of(std::uint64_t hash) { return static_cast<std::uint32_t>(hash) | 1; }

  std::size_t place_of(const WordKey& word, std::uint64_t hash) const {
    const std::uint32_t tag = tag_of(hash);
    std::size_t at = hash >> shift_;
    while (tags_[at] != 0 && (tags_[at] != tag || entries_[at].word != word)) at = (at + 1) & (entries_.size() - 1);
    return at;
  }

  std::vector<std::uint32_t> tags_;  // a part of each word's hash, which rejects most words that are not a token
  std::vector<Entry> entries_;
  int shift_;
};

}  // namespace trireme::tokenizers
