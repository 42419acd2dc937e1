#pragma once

#include <cstdint>

#include "trireme/core/state.hpp"
#include "trireme/files/digest.hpp"

namespace trireme::tests {

// The digest of all elements on this rank: it changes with any bit of them.
inline std::uint64_t digest_of(const State& state) {
  std::uint64_t sum = 0;
  for (const StateTensor& tensor : state.tensors()) {
    for (const StatePiece& piece : tensor.pieces) {
      sum += digest(tensor.name, tensor.dtype, piece.data, piece.elements.count(), piece.elements.begin);
    }
  }
  return sum;
}

}  // namespace trireme::tests
