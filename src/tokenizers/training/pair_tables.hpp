#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

namespace trireme::tokenizers {

// Two adjacent tokens, as one number: the order of these numbers is that of the left tokens, then of the right ones.
using TokenPair = std::uint64_t;

inline TokenPair token_pair(std::int32_t left, std::int32_t right) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 | static_cast<std::uint32_t>(right);
}
inline std::int32_t left_of(TokenPair pair) { return static_cast<std::int32_t>(pair >> 32); }
inline std::int32_t right_of(TokenPair pair) { return static_cast<std::int32_t>(pair & 0xFFFFFFFF); }

// A hash table of the counts of all pairs that occurred.
class PairCounts {
 public:
  struct Entry {
    TokenPair pair = none;
    std::int64_t count = 0;
    std::int32_t list = -1;  // of the words in which a merge made the pair; -1: none
  };

  // Adds the pair if it is not there. The reference is valid until the next call.
  Entry& operator[](TokenPair pair) {
    if (size_ * 3 >= entries_.size() * 2) grow();
    Entry& entry = entries_[place_of(pair)];
    if (entry.pair == none) {
      entry.pair = pair;
      ++size_;
    }
    return entry;
  }

 private:
  static constexpr TokenPair none = ~TokenPair{0};

  std::size_t place_of(TokenPair pair) const {
    std::size_t at = (pair ^ pair >> 29) * 0x9E3779B97F4A7C15u >> (64 - std::countr_zero(entries_.size()));
    while (entries_[at].pair != pair && entries_[at].pair != none) at = (at + 1) & (entries_.size() - 1);
    return at;
  }
  void grow() {
    std::vector<Entry> before(2 * entries_.size());
    before.swap(entries_);
    for (const Entry& entry : before) {
      if (entry.pair != none) entries_[place_of(entry.pair)] = entry;
    }
  }

  std::vector<Entry> entries_ = std::vector<Entry>(std::size_t{1} << 12);
  std::size_t size_ = 0;
};

// Lists of words. Short ones lie together; a long one gives its memory back.
class WordLists {
 public:
  // An empty list of `size` words to fill, and its number.
  std::pair<std::uint32_t, std::uint32_t*> make(std::size_t size) {
    const auto number = static_cast<std::uint32_t>(lists_.size());
    std::uint32_t* words = nullptr;
    if (size > most_of_short) {
      words = long_.emplace(number, std::make_unique_for_overwrite<std::uint32_t[]>(size)).first->second.get();
    } else {
      if (size > free_) {
        blocks_.push_back(std::make_unique_for_overwrite<std::uint32_t[]>(words_of_block));
        free_ = words_of_block;
      }
      words = blocks_.back().get() + (words_of_block - free_);
      free_ -= size;
    }
    lists_.push_back({.words = words, .size = size});
    return {number, words};
  }
  std::span<const std::uint32_t> at(std::uint32_t list) const { return {lists_[list].words, lists_[list].size}; }
  void drop(std::uint32_t list) { long_.erase(list); }

 private:
  static constexpr std::size_t most_of_short = 128, words_of_block = std::size_t{1} << 14;

  struct List {
    const std::uint32_t* words = nullptr;
    std::size_t size = 0;
  };
  std::vector<List> lists_;
  std::vector<std::unique_ptr<std::uint32_t[]>> blocks_;
  std::unordered_map<std::uint32_t, std::unique_ptr<std::uint32_t[]>> long_;
  std::size_t free_ = 0;  // words of the last block
};

}  // namespace trireme::tokenizers
