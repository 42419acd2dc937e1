#pragma once

#include <cstdint>

#include "trireme/core/host_device.hpp"

namespace trireme::ops {

// The sizes of a recurrent layer, and the places of its steps in memory.
struct RecurrentRows {
  std::int64_t batch;
  std::int64_t time;
  std::int64_t hidden;
  std::int64_t gates;           // width of all gates together
  bool reverse;                 // every row is read from its own last step to its first
  const std::int32_t* lengths;  // null: all rows are of full length

  TRIREME_HOST_DEVICE bool has_valid_length(std::int64_t row) const {
    return lengths == nullptr || (lengths[row] >= 1 && lengths[row] <= time);
  }
  TRIREME_HOST_DEVICE std::int64_t length(std::int64_t row) const {
    return lengths != nullptr && has_valid_length(row) ? lengths[row] : time;
  }

  // The place among [batch * time] rows of step `step` of a row; steps from its length on are its padding.
  TRIREME_HOST_DEVICE std::int64_t place(std::int64_t row, std::int64_t step) const {
    const std::int64_t end = length(row);
    return row * time + (reverse && step < end ? end - 1 - step : step);
  }
};

}  // namespace trireme::ops
