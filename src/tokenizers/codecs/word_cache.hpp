#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "tokenizers/codecs/word_key.hpp"

namespace trireme::tokenizers {

// A thread's cache of the tokens of recent words, shared by all models. An entry fills one cache line of the processor.
class WordCache {
 public:
  static constexpr std::size_t most_tokens = 6;

  struct alignas(64) Entry {
    WordKey word;
    std::uint32_t model = 0;  // 0: empty entry
    std::uint32_t count = 0;
    std::array<std::int32_t, most_tokens> tokens{};
  };

  // The first of the two entries that may hold the word; the second one follows.
  Entry* entries_of(const WordKey& word) { return &entries_[word.hash() >> (64 - bits) & ~std::uint64_t{1}]; }

 private:
  static constexpr int bits = 15;

  std::vector<Entry> entries_ = std::vector<Entry>(std::size_t{1} << bits);
};
static_assert(sizeof(WordCache::Entry) == 64);

}  // namespace trireme::tokenizers
