#pragma once

#include "trireme/core/error.hpp"
#include "trireme/ops/update/adam_8bit.hpp"

// The passes of ops/update/adam_8bit.hpp for any device: Adam8bitPasses<D> does the work.
namespace trireme::ops {

template <typename D>
struct Adam8bitPasses {
  template <typename T>
  static void update(const AdamStep& step, std::int64_t count, const Adam8bitPlanes<T>& planes);
  template <typename T>
  static void measure(const AdamStep& step, std::int64_t count, const Adam8bitPlanes<T>& planes, float* absmax);
  template <typename T>
  static void update_part(const AdamStep& step, std::int64_t count, const Adam8bitPlanes<T>& planes, const float* absmax,
                          std::int64_t parts);
};

inline void require_in_block(const char* name, std::size_t count) {
  require(count <= static_cast<std::size_t>(block_of_8bit), "{}: {} elements do not lie in one block of {}", name, count,
          block_of_8bit);
}

template <typename T, typename D>
void adam_8bit(const AdamStep& step, std::size_t count, const Adam8bitPlanes<T>& planes, D) {
  if (count > 0) Adam8bitPasses<D>::update(step, static_cast<std::int64_t>(count), planes);
}

template <typename T, typename D>
void measure_adam_8bit(const AdamStep& step, std::size_t count, const Adam8bitPlanes<T>& planes, float* absmax, D) {
  require_in_block("measure_adam_8bit", count);
  Adam8bitPasses<D>::measure(step, static_cast<std::int64_t>(count), planes, absmax);
}

template <typename T, typename D>
void adam_8bit_part(const AdamStep& step, std::size_t count, const Adam8bitPlanes<T>& planes, const float* absmax,
                    std::int64_t parts, D) {
  require_in_block("adam_8bit_part", count);
  require(parts > 0, "adam_8bit_part: a block has at least 1 part, not {}", parts);
  if (count > 0) Adam8bitPasses<D>::update_part(step, static_cast<std::int64_t>(count), planes, absmax, parts);
}

}  // namespace trireme::ops
