#pragma once

#include <cstdint>

namespace trireme::ops {

// A tensor's rows or classes are those from `first` on, of `total` in the whole vocabulary.
struct VocabRange {
  std::int64_t first = 0;
  std::int64_t total = 0;
};

}  // namespace trireme::ops
