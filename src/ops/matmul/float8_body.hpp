#pragma once

#include <bit>
#include <limits>

#include "ops/base/pack.hpp"
#include "trireme/core/float8.hpp"
#include "trireme/math/exponential.hpp"

// The quantisation of ops/matmul/float8.hpp.
namespace trireme::ops {

// Conversions that a GPU has instructions for.
#if __CUDA_ARCH__ >= 890
template <>
TRIREME_HOST_DEVICE float8_e4m3 rounded<float8_e4m3>(float x) {
  std::uint16_t bits;  // of two numbers; x is the lower one
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(bits) : "f"(0.0f), "f"(x));
  return float8_e4m3::from_bits(static_cast<std::uint8_t>(bits));
}
template <>
TRIREME_HOST_DEVICE float8_e5m2 rounded<float8_e5m2>(float x) {
  std::uint16_t bits;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(bits) : "f"(0.0f), "f"(x));
  return float8_e5m2::from_bits(static_cast<std::uint8_t>(bits));
}
#endif

TRIREME_HOST_DEVICE float finite_magnitude(float x) { return math::is_finite(x) ? math::absolute(x) : 0; }

template <typename F>
TRIREME_HOST_DEVICE F quantized(float x, float scale) {
  return rounded<F>(math::is_finite(x) ? x * scale : std::numeric_limits<float>::quiet_NaN());
}

// The factor of float8_scale() for the largest magnitude `amax`. Its inverse is not subnormal.
template <typename F>
TRIREME_HOST_DEVICE float power_of_two_scale(float amax) {
  constexpr std::uint32_t exponent = 0x7F80'0000;
  constexpr float most = 0x1p126F;
  if (amax == 0) return 1;
  const float ratio = F::largest / amax;
  return ratio < most ? std::bit_cast<float>(std::bit_cast<std::uint32_t>(ratio) & exponent) : most;
}

struct Amaxes {
  const float* values = nullptr;
  std::int64_t count = 0;
};

template <typename Team>
TRIREME_TEAM float largest_of(const Team& team, const Amaxes& amaxes) {
  float largest = 0;
  for (std::int64_t i = team.rank(); i < amaxes.count; i += team.size()) {
    largest = amaxes.values[i] > largest ? amaxes.values[i] : largest;
  }
  return team.max(largest);
}

// amaxes[part] = the largest magnitude in every `parts`-th run of team.size() packs, of `count` elements. If one of `known` is
// above 0, nothing is read and all amaxes are 0.
template <int Width, typename T>
struct AmaxParts {
  const T* x;
  std::int64_t count;
  std::int64_t parts;
  float* amaxes;
  Amaxes known = {};

  template <typename Team>
  TRIREME_TEAM void operator()(const Team& team, std::int64_t part) const {
    if (known.count > 0 && largest_of(team, known) > 0) {
      if (team.rank() == 0) amaxes[part] = 0;
      return;
    }
    const std::int64_t packs = count / Width;
    const std::int64_t threads = parts * team.size();
    const std::int64_t thread = part * team.size() + team.rank();
    float largest = 0;
    const auto take = [&](float value) { largest = value > largest ? value : largest; };
    for (std::int64_t pack = thread; pack < packs; pack += threads) {
      const auto values = load<Width>(x + pack * Width);
      for (int k = 0; k < Width; ++k) take(finite_magnitude(values.at[k]));
    }
    for (std::int64_t i = packs * Width + thread; i < count; i += threads) take(finite_magnitude(widened(x[i])));
    largest = team.max(largest);
    if (team.rank() == 0) amaxes[part] = largest;
  }
};

// By one team.
struct LargestAmax {
  Amaxes amaxes;
  float* result;

  template <typename Team>
  TRIREME_TEAM void operator()(const Team& team) const {
    const float largest = largest_of(team, amaxes);
    if (team.rank() == 0) *result = largest;
  }
};

// By one team.
template <typename F>
struct ScaleOfAmaxes {
  Amaxes amaxes;
  float* scale;
  Amaxes others = {};

  template <typename Team>
  TRIREME_TEAM void operator()(const Team& team) const {
    const float largest = largest_of(team, amaxes);
    const float other = largest_of(team, others);
    const float found = power_of_two_scale<F>(largest > other ? largest : other);
    if (team.rank() != 0) return;
    scale[0] = 1 / found;
    scale[1] = found;
  }
};

// By one team. It moves the history starting from the end, team.size() places at a time.
struct PushAmax {
  const float* amax;
  float* history;
  std::int64_t length;

  template <typename Team>
  TRIREME_TEAM void operator()(const Team& team) const {
    const std::int64_t size = team.size();
    for (std::int64_t begin = (length - 1) / size * size; begin >= 0; begin -= size) {
      const std::int64_t i = begin + team.rank();
      const float value = i == 0 ? *amax : i < length ? history[i - 1] : 0;
      team.wait();
      if (i < length) history[i] = value;
    }
  }
};

inline constexpr int quantize_tile = 64;
inline constexpr int quantize_pack = 4;  // codes that a thread writes at once

TRIREME_HOST_DEVICE std::int64_t quantize_tiles_along(std::int64_t dim) { return (dim + quantize_tile - 1) / quantize_tile; }

// A team moves a square of x[rows, columns] through its shared memory, so that codes and their transpose are both written along
// rows.
template <typename T, typename F>
struct QuantizeTile {
  using Memory =
      F[quantize_tile][quantize_tile + quantize_pack];  // more, so that a column lies in different banks of shared memory

  const T* x;
  std::int64_t rows;  // rows and columns are multiples of a pack
  std::int64_t columns;
  const float* scale;
  F* codes;  // may be null, like transposed and amaxes
  F* transposed;
  float* amaxes = nullptr;  // the largest of each tile

  TRIREME_TEAM std::int64_t column_tiles() const { return quantize_tiles_along(columns); }

  template <typename Team>
  TRIREME_TEAM void operator()(const Team& team, std::int64_t tile, Memory& memory) const {
    constexpr int packs = quantize_tile / quantize_pack;
    const float factor = scale[1];
    const std::int64_t first_row = tile / column_tiles() * quantize_tile;
    const std::int64_t first_column = tile % column_tiles() * quantize_tile;
    float largest = 0;
    for (int i = team.rank(); i < quantize_tile * packs; i += team.size()) {
      const int row = i / packs;
      const int column = i % packs * quantize_pack;
      if (first_row + row >= rows || first_column + column >= columns) continue;
      const std::int64_t at = (first_row + row) * columns + first_column + column;
      const auto values = load<quantize_pack>(x + at);
      Pack<F, quantize_pack> made;
      for (int k = 0; k < quantize_pack; ++k) {
        const float magnitude = finite_magnitude(values.at[k]);
        largest = magnitude > largest ? magnitude : largest;
        made.at[k] = quantized<F>(values.at[k], factor);
        memory[row][column + k] = made.at[k];
      }
      if (codes != nullptr) *reinterpret_cast<Pack<F, quantize_pack>*>(codes + at) = made;
    }
    if (amaxes != nullptr) {
      largest = team.max(largest);
      if (team.rank() == 0) amaxes[tile] = largest;
    }
    if (transposed == nullptr) return;
    team.wait();
    for (int i = team.rank(); i < quantize_tile * packs; i += team.size()) {
      const int column = i / packs;
      const int row = i % packs * quantize_pack;
      if (first_row + row >= rows || first_column + column >= columns) continue;
      Pack<F, quantize_pack> moved;
      for (int k = 0; k < quantize_pack; ++k) moved.at[k] = memory[row + k][column];
      *reinterpret_cast<Pack<F, quantize_pack>*>(transposed + (first_column + column) * rows + first_row + row) = moved;
    }
    team.wait();  // before the next tile overwrites the memory
  }
};

}  // namespace trireme::ops
