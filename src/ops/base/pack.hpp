#pragma once

#include <cstdint>

#include "device/cuda/team.hpp"
#include "ops/base/convert.hpp"
#include "trireme/core/host_device.hpp"

namespace trireme::ops {

// Neighbours that a thread reads or writes in accesses of 16 bytes.
template <typename T, int Width>
struct alignas(sizeof(T) * Width < 16 ? sizeof(T) * Width : 16) Pack {
  T at[Width];
};

// Whether packs of 16 bytes may begin at this address.
inline bool is_aligned(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0; }

// Reads `Width` elements from x on, which is aligned to a pack. load() also converts them to the type that T is computed in.
template <int Width, typename T>
TRIREME_TEAM Pack<T, Width> read(const T* x) {
  return *reinterpret_cast<const Pack<T, Width>*>(x);
}
template <int Width, typename T>
TRIREME_TEAM Pack<Accumulate<T>, Width> load(const T* x) {
  const auto from = read<Width>(x);
  Pack<Accumulate<T>, Width> values;
  for (int k = 0; k < Width; ++k) values.at[k] = widened(from.at[k]);
  return values;
}
template <int Width, typename T>
TRIREME_TEAM void store(T* y, const Pack<Accumulate<T>, Width>& values) {
  Pack<T, Width> to;
  for (int k = 0; k < Width; ++k) to.at[k] = rounded<T>(values.at[k]);
  *reinterpret_cast<Pack<T, Width>*>(y) = to;
}

// Calls visit(j) for each pack in this thread's share of a row, where j is the pack's first element. Width divides `width`.
template <int Width, typename Team, typename Visit>
TRIREME_TEAM void each_pack(const Team& team, std::int64_t width, Visit visit) {
  const std::int64_t step = std::int64_t{team.size()} * Width;
  for (std::int64_t j = std::int64_t{team.rank()} * Width; j < width; j += step) visit(j);
}

// Likewise visit(number, j). number is the pack's index among the thread's at most `Packs` packs; as it is known to the
// compiler, packs can stay in registers.
template <int Width, int Packs, typename Team, typename Visit>
TRIREME_TEAM void each_numbered_pack(const Team& team, std::int64_t width, Visit visit) {
  TRIREME_UNROLL(16)
  for (int number = 0; number < Packs; ++number) {
    const std::int64_t j = (std::int64_t{number} * team.size() + team.rank()) * Width;
    if (j < width) visit(number, j);
  }
}

}  // namespace trireme::ops
