#pragma once

#include <cstdint>

#include "ops/kernels/table.hpp"

namespace trireme::ops {

// One random word for each element: word index % 4 of philox(seed, stream, index / 4), see core/philox.hpp. Elements whose
// word is at least `threshold` are kept.
struct DropoutNumbers {
  std::uint64_t seed = 0;
  std::uint64_t stream = 0;
  std::uint64_t first_index = 0;  // of the first element of the call
  std::uint32_t threshold = 0;
};

template <typename T>
struct DropoutKernels {
  // y = factor * x where kept, 0 elsewhere.
  void (*dropout)(const T* x, T factor, const DropoutNumbers& numbers, T* y, std::int64_t count, bool accumulate);
};

TRIREME_KERNEL_TABLE(KernelTable<DropoutKernels>, dropout_kernels)

}  // namespace trireme::ops
