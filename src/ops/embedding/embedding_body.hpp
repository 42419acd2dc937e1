#pragma once

#include <limits>

#include "ops/base/pack.hpp"

// The operations of ops/embedding/embedding.hpp, a thread for each pack of columns.
namespace trireme::ops {

// y[place] = weight[index[place]], or += with `accumulate`; NaN if the index is out of range. For i in [0, places * width /
// Width).
template <int Width, typename T>
struct GatherRows {
  const std::int32_t* index;
  const T* weight;  // [rows, width]
  std::int64_t rows;
  std::int64_t width;
  T* y;
  bool accumulate;

  TRIREME_TEAM void operator()(std::int64_t i) const {
    const std::int64_t column = i % (width / Width) * Width;
    const std::int64_t place = i / (width / Width);
    const std::int32_t row = index[place];
    Pack<T, Width> values;
    for (int k = 0; k < Width; ++k) values.at[k] = std::numeric_limits<T>::quiet_NaN();
    if (row >= 0 && row < rows) values = load<Width>(weight + row * width + column);
    T* to = y + place * width + column;
    if (accumulate) {
      const auto before = load<Width>(to);
      for (int k = 0; k < Width; ++k) values.at[k] += before.at[k];
    }
    store<Width>(to, values);
  }
};

inline constexpr std::int64_t gradient_chunk = 32;  // places of the sorted index that one thread sums

// dweight[key] += dy[place] for all places, which are sorted by their keys and cut into chunks. Places with the same key are a
// run. First each chunk sums its runs. If its first run began in an earlier chunk, the sum of that run goes to `continued`.
template <int Width, typename T>
struct ScatterRows {
  const std::int32_t* keys;    // [count], sorted
  const std::int32_t* places;  // of dy
  std::int64_t count;
  const T* dy;
  std::int64_t rows;  // keys from here on are invalid indices
  std::int64_t width;
  T* dweight;
  T* continued;  // [chunks, width]

  TRIREME_TEAM std::int64_t chunks() const { return (count + gradient_chunk - 1) / gradient_chunk; }
  TRIREME_TEAM std::int64_t end_of(std::int64_t chunk) const {
    return (chunk + 1) * gradient_chunk < count ? (chunk + 1) * gradient_chunk : count;
  }
  // Whether the place belongs to the same run as the place before it.
  TRIREME_TEAM bool continues(std::int64_t at) const { return at > 0 && at < count && keys[at] == keys[at - 1]; }

  // For i in [0, chunks * width / Width).
  TRIREME_TEAM void operator()(std::int64_t i) const {
    const std::int64_t column = i % (width / Width) * Width;
    const std::int64_t chunk = i / (width / Width);
    const std::int64_t end = end_of(chunk);
    bool began_before = continues(chunk * gradient_chunk);
    Pack<T, Width> sums{};
    for (std::int64_t at = chunk * gradient_chunk; at < end; ++at) {
      if (keys[at] >= rows) break;  // and so are all keys after it
      const auto gradients = load<Width>(dy + places[at] * width + column);
      for (int k = 0; k < Width; ++k) sums.at[k] += gradients.at[k];
      if (at + 1 < end && continues(at + 1)) continue;
      if (began_before) {
        store<Width>(continued + chunk * width + column, sums);
      } else {
        add(keys[at], column, sums);
      }
      began_before = false;
      sums = {};
    }
  }

  TRIREME_TEAM void add(std::int64_t key, std::int64_t column, const Pack<T, Width>& sums) const {
    auto values = load<Width>(dweight + key * width + column);
    for (int k = 0; k < Width; ++k) values.at[k] += sums.at[k];
    store<Width>(dweight + key * width + column, values);
  }
};

// Then the chunk in which a run begins adds the sums of later chunks for this run, from `continued`. For i in [0, chunks *
// width / Width).
template <int Width, typename T>
struct ScatterContinuedRows {
  ScatterRows<Width, T> of;

  TRIREME_TEAM void operator()(std::int64_t i) const {
    const std::int64_t column = i % (of.width / Width) * Width;
    const std::int64_t chunk = i / (of.width / Width);
    const std::int64_t begin = chunk * gradient_chunk;
    const std::int64_t end = of.end_of(chunk);
    if (!of.continues(end)) return;
    const std::int32_t key = of.keys[end];
    if (key >= of.rows) return;
    if (of.keys[begin] == key && of.continues(begin)) return;
    Pack<T, Width> sums{};
    for (std::int64_t next = chunk + 1; next < of.chunks() && of.keys[next * gradient_chunk] == key; ++next) {
      const auto kept = load<Width>(of.continued + next * of.width + column);
      for (int k = 0; k < Width; ++k) sums.at[k] += kept.at[k];
    }
    of.add(key, column, sums);
  }
};

}  // namespace trireme::ops
