#pragma once

#include <cstdint>

#include "device/cuda/team.hpp"

// A stable radix sort of the places of an index by their rows. Each pass takes one digit of the rows, the lowest first: it
// counts the digits in each tile of the keys, then moves keys and places. No thread depends on the timing of another, so the
// order is the same in every run.
namespace trireme::ops {

inline constexpr int digit_bits = 8;
inline constexpr int num_digits = 1 << digit_bits;
inline constexpr std::int64_t sort_tile = 512;  // keys

// keys[i] = index[i] - first, or `rows` if that is out of range or the padding, which gets no gradient; places[i] = i.
struct KeysOfIndex {
  const std::int32_t* index;
  std::int32_t first;
  std::int64_t rows;
  std::int32_t padding;
  std::int32_t* keys;
  std::int32_t* places;

  TRIREME_TEAM void operator()(std::int64_t i) const {
    const std::int64_t row = std::int64_t{index[i]} - first;
    keys[i] = row >= 0 && row < rows && index[i] != padding ? static_cast<std::int32_t>(row) : static_cast<std::int32_t>(rows);
    places[i] = static_cast<std::int32_t>(i);
  }
};

struct SortPass {
  const std::int32_t* keys;
  const std::int32_t* places;
  std::int64_t count;
  int shift;                  // of the digit
  std::int32_t* tile_digits;  // [tiles, num_digits]: first the counts, then the place of the first key with this digit
  std::int32_t* moved_keys;
  std::int32_t* moved_places;

  TRIREME_TEAM std::int64_t tiles() const { return (count + sort_tile - 1) / sort_tile; }
  TRIREME_TEAM int digit(std::int64_t i) const { return (keys[i] >> shift) & (num_digits - 1); }
  TRIREME_TEAM std::int64_t end_of(std::int64_t tile) const {
    return (tile + 1) * sort_tile < count ? (tile + 1) * sort_tile : count;
  }
};

// A team for each tile, a thread for each digit.
struct CountDigits {
  SortPass pass;

  template <typename Team>
  TRIREME_TEAM void operator()(const Team& team, std::int64_t tile) const {
    const std::int64_t end = pass.end_of(tile);
    for (int digit = team.rank(); digit < num_digits; digit += team.size()) {
      std::int32_t found = 0;
      for (std::int64_t i = tile * sort_tile; i < end; ++i) found += pass.digit(i) == digit ? 1 : 0;
      pass.tile_digits[tile * num_digits + digit] = found;
    }
  }
};

// By one team: computes the places. Keys with smaller digits come first, and of equal digits those of earlier tiles.
struct PlaceDigits {
  SortPass pass;
  std::int32_t* all;  // [num_digits]: the count of each digit

  template <typename Team>
  TRIREME_TEAM void operator()(const Team& team) const {
    for (int digit = team.rank(); digit < num_digits; digit += team.size()) {
      std::int32_t found = 0;
      for (std::int64_t tile = 0; tile < pass.tiles(); ++tile) found += pass.tile_digits[tile * num_digits + digit];
      all[digit] = found;
    }
    team.wait();
    for (int digit = team.rank(); digit < num_digits; digit += team.size()) {
      std::int32_t next = 0;
      for (int smaller = 0; smaller < digit; ++smaller) next += all[smaller];
      for (std::int64_t tile = 0; tile < pass.tiles(); ++tile) {
        std::int32_t& place = pass.tile_digits[tile * num_digits + digit];
        const std::int32_t found = place;
        place = next;
        next += found;
      }
    }
  }
};

// As CountDigits.
struct MoveByDigit {
  SortPass pass;

  template <typename Team>
  TRIREME_TEAM void operator()(const Team& team, std::int64_t tile) const {
    const std::int64_t end = pass.end_of(tile);
    for (int digit = team.rank(); digit < num_digits; digit += team.size()) {
      std::int32_t to = pass.tile_digits[tile * num_digits + digit];
      for (std::int64_t i = tile * sort_tile; i < end; ++i) {
        if (pass.digit(i) != digit) continue;
        pass.moved_keys[to] = pass.keys[i];
        pass.moved_places[to] = pass.places[i];
        ++to;
      }
    }
  }
};

}  // namespace trireme::ops
