#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

namespace trireme::tokenizers {

// `readable` is the number of bytes that may be read from the begin of the word.
std::uint64_t hash_of_word(std::string_view word, std::size_t readable);

// A hash table of words and how often they occur.
class WordCounts {
 public:
  void add(std::string_view word, std::uint64_t hash, std::int64_t count);

  std::int64_t size() const { return static_cast<std::int64_t>(entries_.size()); }
  std::int64_t bytes() const { return bytes_; }  // of all words
  void clear();                                  // keeps the memory of the table

  // Calls visit(word, hash, count) for each word.
  template <typename Visit>
  void for_each(const Visit& visit) const {
    for (const Entry& entry : entries_) visit(std::string_view(entry.text, entry.size), entry.hash, entry.count);
  }

 private:
  struct Entry {
    const char* text = nullptr;
    std::int64_t count = 0;
    std::uint64_t hash = 0;
    std::uint32_t size = 0;
  };
  const char* keep(std::string_view word);
  void grow();

  std::vector<Entry> entries_;
  std::vector<std::uint32_t> slots_;  // the number of an entry + 1; 0: free
  std::vector<std::unique_ptr<char[]>> blocks_;
  std::size_t free_ = 0;  // bytes of the last block
  std::int64_t bytes_ = 0;
};

// Counts that several threads add to.
class SharedWordCounts {
 public:
  void add(const WordCounts& more);

  static constexpr std::size_t parts = 64;
  // Only after all threads have added theirs.
  WordCounts& part(std::size_t number) { return parts_[number].counts; }
  std::int64_t size() const;
  std::int64_t bytes() const;

 private:
  struct Part {
    std::mutex mutex;
    WordCounts counts;
  };
  std::array<Part, parts> parts_;
};

}  // namespace trireme::tokenizers
