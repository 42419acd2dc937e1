#pragma once

#include <cstdint>

#include "device/cuda/team.hpp"

namespace trireme::ops {

struct TriangleSizes {
  bool upper;
  std::int64_t rows;
  std::int64_t columns;
  std::int64_t diagonal;
};

// The triangles of ops/array/triangle.hpp, a thread for each element. It moves bits: Word is any type with the size of an
// element.
template <typename Word>
struct TakeTriangle {
  TriangleSizes sizes;
  const Word* x;
  Word* y;

  TRIREME_TEAM void operator()(std::int64_t i) const {
    const std::int64_t place = i % sizes.columns - i / sizes.columns % sizes.rows;
    const bool inside = sizes.upper ? place >= sizes.diagonal : place <= sizes.diagonal;
    y[i] = inside ? x[i] : Word(0);
  }
};

}  // namespace trireme::ops
