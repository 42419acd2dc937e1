#pragma once

#include <cstdint>

#include "ops/base/scalar_argument.hpp"
#include "trireme/core/dtype.hpp"

namespace trireme::ops {

// The input of a cross-entropy: logits[count, classes], targets[count] and the options.
template <typename T>
struct CrossEntropyRows {
  const T* logits;
  const std::int32_t* targets;
  const Accumulate<T>* class_weight;  // null: 1
  std::int64_t count;
  std::int64_t classes;
  std::int32_t ignore_index;
  double label_smoothing;
};

// The upstream gradient: one for each row, or if that is null one for all rows.
template <typename A>
struct CrossEntropyScale {
  ScalarArgument<A> of_all;
  const A* of_rows;

  TRIREME_HOST_DEVICE A of(std::int64_t row) const { return of_rows == nullptr ? of_all.get() : of_rows[row]; }
};

}  // namespace trireme::ops
