#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "tokenizers/codecs/word_key.hpp"

namespace trireme::tokenizers {

// Words and their tokens, in memory that begins as zeros. All models share it.
template <typename Key, std::size_t tokens_of_word, int bits>
class WordEntries {
 public:
  static constexpr std::size_t most_tokens = tokens_of_word;
  static constexpr std::size_t count = std::size_t{1} << bits;

  struct Entry {
    Key word;
    std::array<std::int32_t, most_tokens> tokens;
    std::uint32_t owner;  // the model's number, and in the last three bits the number of tokens; 0: empty entry

    bool has_tokens() const { return count() <= most_tokens; }  // else there are too many for an entry
    std::size_t count() const { return owner & 7; }
  };

  explicit WordEntries(void* memory) : entries_(static_cast<Entry*>(memory)) {}

  // Each word has four places: two in a row, and two beside these.
  Entry* places_of(const Key& word) const { return entries_ + (word.hash() >> (64 - bits) & ~std::uint64_t{1}); }

  // The place that holds the word, or null. Does not branch between the first two.
  const Entry* find(const Entry* first, const Key& word, std::uint32_t model) const {
    const auto holds = [&](const Entry& entry) { return (entry.word == word) & ((entry.owner ^ model << 3) < 8); };
    const Entry* place = first + !holds(first[0]);
    if (holds(*place)) [[likely]]
      return place;
    if (first[1].owner == 0) return nullptr;  // words come there only when these are taken
    place = beside(first) + !holds(*beside(first));
    return holds(*place) ? place : nullptr;
  }

  // Keeps the tokens of a word that has no place yet, in an empty place, or else instead of another word.
  void keep(Entry* first, const Key& word, std::uint32_t model, std::span<const std::int32_t> tokens) {
    Entry* const others = beside(first);
    Entry* const places[] = {first, first + 1, others, others + 1};
    Entry* const* const empty = std::ranges::find(places, 0u, [](const Entry* each) { return each->owner; });
    Entry& place = empty != std::end(places) ? **empty : *places[replaced_++ % 4];
    place.word = word;
    const bool fits = tokens.size() <= most_tokens;
    place.owner = model << 3 | static_cast<std::uint32_t>(fits ? tokens.size() : most_tokens + 1);
    if (fits) std::ranges::copy(tokens, place.tokens.begin());
  }

 private:
  Entry* beside(const Entry* first) const { return entries_ + ((first - entries_) ^ 2); }

  Entry* entries_;
  std::size_t replaced_ = 0;
};

// A thread's cache of the tokens of recent words.
class WordCache {
 public:
  using Short = WordEntries<ShortWord, 3, 16>;
  using Long = WordEntries<WordKey, 6, 12>;

  WordCache();
  ~WordCache();
  WordCache(const WordCache&) = delete;
  WordCache& operator=(const WordCache&) = delete;

 private:
  void* memory_;  // that of the words

 public:
  Short short_words;  // two entries fill one cache line of the processor
  Long long_words;    // longer ones, and those of many tokens
};
static_assert(sizeof(WordCache::Short::Entry) == 32 && sizeof(WordCache::Long::Entry) == 64);

}  // namespace trireme::tokenizers
