#pragma once

#include <array>
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
      : entries_(std::bit_ceil(2 * count + 2)), shift_(64 - std::countr_zero(entries_.size())) {}

  void add(const WordKey& word, std::int32_t token) {
    entries_[place_of(word)] = {.parts = word.parts, .bytes = static_cast<std::uint32_t>(word.bytes), .token = token};
  }

  // Returns -1 if the word is not a token.
  std::int32_t find(const WordKey& word) const { return entries_[place_of(word)].token; }

  // Prefetches what find() will need soon.
  void fetch(const WordKey& word) const { __builtin_prefetch(&entries_[word.hash() >> shift_]); }

 private:
  struct alignas(32) Entry {
    std::array<std::uint64_t, 3> parts{};
    std::uint32_t bytes = 0;
    std::int32_t token = -1;  // a free place
  };

  std::size_t place_of(const WordKey& word) const {
    std::size_t at = word.hash() >> shift_;
    while (entries_[at].token >= 0 && (entries_[at].parts != word.parts || entries_[at].bytes != word.bytes)) {
      at = (at + 1) & (entries_.size() - 1);
    }
    return at;
  }

  std::vector<Entry> entries_;
  int shift_;
};

}  // namespace trireme::tokenizers
