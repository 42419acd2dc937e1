#pragma once

#include <cstdint>
#include <vector>

namespace trireme::tokenizers {

struct Symbol {
  std::int32_t token = 0;
  std::int32_t bytes = 0;
};

// The pairs of tokens to merge, with their ranks.
class Merges {
 public:
  struct Merge {
    std::int32_t rank = none;
    std::int32_t token = 0;
  };
  static constexpr std::int32_t none = INT32_MAX;

  // Reserves space for `count` pairs.
  explicit Merges(std::size_t count);

  // If a pair is added several times, the last one counts.
  void add(std::int32_t left, std::int32_t right, const Merge& merge);

  // Applies all merges, lowest rank first, at equal ranks the leftmost.
  void apply(std::vector<Symbol>& word) const;

 private:
  struct Entry {
    std::uint64_t pair = empty;
    Merge merge;
  };
  static constexpr std::uint64_t empty = ~std::uint64_t{0};

  static std::uint64_t pair_of(std::int32_t left, std::int32_t right) {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 | static_cast<std::uint32_t>(right);
  }
  static std::uint64_t hash_of(std::uint64_t pair) { return pair * 0x9E3779B97F4A7C15u; }
  std::size_t place_of(std::uint64_t pair) const { return hash_of(pair) >> shift_; }
  // Whether a pair may have an entry. The processor's cache has room for these bits, which tell most pairs that are not merged.
  bool may_have(std::uint64_t pair) const {
    const std::uint64_t bit = hash_of(pair) >> (shift_ - 3);
    return (known_[bit / 64] >> bit % 64 & 1) != 0;
  }
  // Prefetches the entry of a pair that find() will need soon.
  void fetch(std::int32_t left, std::int32_t right) const {
    const std::uint64_t pair = pair_of(left, right);
    if (may_have(pair)) __builtin_prefetch(&entries_[place_of(pair)]);
  }
  Merge find(std::int32_t left, std::int32_t right) const {
    const std::uint64_t pair = pair_of(left, right);
    if (!may_have(pair)) return {};
    for (std::size_t at = place_of(pair);; at = (at + 1) & mask_) {
      if (entries_[at].pair == pair) return entries_[at].merge;
      if (entries_[at].pair == empty) return {};
    }
  }
  void apply_to_short(std::vector<Symbol>& word) const;
  void apply_to_long(std::vector<Symbol>& word) const;

  std::vector<Entry> entries_;
  std::vector<std::uint64_t> known_;  // 8 bits for each of `entries_`, by the hash of the pairs
  std::size_t mask_;
  int shift_;
};

}  // namespace trireme::tokenizers
