#pragma once

#include <bit>
#include <cstdint>
#include <vector>

#include "tokenizers/word_key.hpp"

namespace trireme::tokenizers {

// The token of words that are one.
class WordTable {
 public:
  // Room for so many words.
  explicit WordTable(std::size_t count)
      : entries_(std::bit_ceil(2 * count + 2)), shift_(64 - std::countr_zero(entries_.size())) {}

  void add(const WordKey& word, std::int32_t token) { entries_[place_of(word)] = {.word = word, .token = token}; }

  // -1: it is none.
  std::int32_t find(const WordKey& word) const { return entries_[place_of(word)].token; }

 private:
  struct Entry {
    WordKey word{""};
    std::int32_t token = -1;
  };

  std::size_t place_of(const WordKey& word) const {
    std::size_t at = word.hash() >> shift_;
    while (entries_[at].token >= 0 && entries_[at].word != word) at = (at + 1) & (entries_.size() - 1);
    return at;
  }

  std::vector<Entry> entries_;
  int shift_;
};

}  // namespace trireme::tokenizers
