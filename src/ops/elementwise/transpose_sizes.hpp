#pragma once

#include <cstdint>

namespace trireme::ops {

// [outer, rows, middle, columns, inner] becomes [outer, columns, middle, rows, inner].
struct TransposeSizes {
  std::int64_t outer;
  std::int64_t rows;
  std::int64_t middle;
  std::int64_t columns;
  std::int64_t inner;
};

}  // namespace trireme::ops
