#include "tokenizers/training/word_counts.hpp"

#include <algorithm>
#include <bit>
#include <functional>

#include "tokenizers/codecs/word_key.hpp"
#include "trireme/core/error.hpp"

namespace trireme::tokenizers {
namespace {

constexpr std::size_t bytes_of_block = std::size_t{1} << 14;

// The highest bits choose the part of SharedWordCounts, those below a slot of its table.
constexpr int bits_of_part = 6;
static_assert(SharedWordCounts::parts == std::size_t{1} << bits_of_part);

std::size_t slot_of(std::uint64_t hash, std::size_t slots) { return hash << bits_of_part >> (64 - std::countr_zero(slots)); }

}  // namespace

std::uint64_t hash_of_word(std::string_view word, std::size_t readable) {
  if (word.size() <= WordKey::most_bytes) return WordKey(word, readable).hash();
  return std::hash<std::string_view>()(word) * 0x9E3779B97F4A7C15u;
}

void WordCounts::add(std::string_view word, std::uint64_t hash, std::int64_t count) {
  if (entries_.size() * 4 >= slots_.size() * 3) grow();
  for (std::size_t at = slot_of(hash, slots_.size());; at = (at + 1) & (slots_.size() - 1)) {
    if (slots_[at] == 0) {
      entries_.push_back({.text = keep(word), .count = count, .hash = hash, .size = static_cast<std::uint32_t>(word.size())});
      slots_[at] = static_cast<std::uint32_t>(entries_.size());
      return;
    }
    Entry& entry = entries_[slots_[at] - 1];
    if (entry.hash == hash && std::string_view(entry.text, entry.size) == word) {
      entry.count += count;
      return;
    }
  }
}

void WordCounts::clear() {
  entries_.clear();
  std::ranges::fill(slots_, 0);
  blocks_.clear();
  free_ = 0;
  bytes_ = 0;
}

const char* WordCounts::keep(std::string_view word) {
  bytes_ += static_cast<std::int64_t>(word.size());
  if (word.size() > free_) {
    free_ = std::max(word.size(), bytes_of_block);
    blocks_.push_back(std::make_unique_for_overwrite<char[]>(free_));
  }
  // Words fill a block from its end.
  free_ -= word.size();
  char* const to = blocks_.back().get() + free_;
  word.copy(to, word.size());
  return to;
}

void WordCounts::grow() {
  require(entries_.size() < std::size_t{1} << 31, "the texts have more than {} distinct words: train on fewer of them",
          SharedWordCounts::parts << 31);
  slots_.assign(std::max<std::size_t>(2 * slots_.size(), 64), 0);
  for (std::size_t number = 0; number < entries_.size(); ++number) {
    std::size_t at = slot_of(entries_[number].hash, slots_.size());
    while (slots_[at] != 0) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = static_cast<std::uint32_t>(number + 1);
  }
}

void SharedWordCounts::add(const WordCounts& more) {
  more.for_each([this](std::string_view word, std::uint64_t hash, std::int64_t count) {
    Part& part = parts_[hash >> (64 - bits_of_part)];
    const std::lock_guard lock(part.mutex);
    part.counts.add(word, hash, count);
  });
}

std::int64_t SharedWordCounts::size() const {
  std::int64_t size = 0;
  for (const Part& part : parts_) size += part.counts.size();
  return size;
}

std::int64_t SharedWordCounts::bytes() const {
  std::int64_t bytes = 0;
  for (const Part& part : parts_) bytes += part.counts.bytes();
  return bytes;
}

}  // namespace trireme::tokenizers
