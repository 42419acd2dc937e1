#pragma once

#include <cstdint>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

// A tensor's rows or classes are those from `first` on, of `total` in the whole vocabulary.
struct VocabRange {
  std::int64_t first = 0;
  std::int64_t total = 0;
};

}  // namespace ops
}  // namespace trireme
