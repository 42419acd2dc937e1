#pragma once

#include <cstdint>

#include "trireme/core/dtype.hpp"
#include "trireme/ops/loss/vocab_range.hpp"

// The inputs of the operations of ops/loss/vocab_parallel.hpp.
namespace trireme::ops {

struct HeldRows {
  const std::int32_t* index;  // [places]
  std::int64_t places;
  VocabRange held;
  std::int64_t count;  // number of rows held here
  std::int64_t width;
};

template <typename T>
struct HeldClasses {
  const T* logits;              // [rows, classes]
  const std::int32_t* targets;  // [rows]
  std::int64_t rows;
  VocabRange held;
  std::int64_t classes;  // held here
};

template <typename A>
struct CrossEntropyParts {
  const A* parts;               // [2 * ranks + 1, rows]
  const std::int32_t* targets;  // [rows]
  std::int64_t ranks;
  std::int64_t rows;
};

}  // namespace trireme::ops
