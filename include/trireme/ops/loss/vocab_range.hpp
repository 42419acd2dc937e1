#pragma once

#include <cstdint>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

// A tensor holds neighbouring rows or classes of a vocabulary, from number `first` on. The whole vocabulary has `total` rows or
// classes.
struct VocabRange {
  std::int64_t first = 0;
  std::int64_t total = 0;
};

}  // namespace ops
}  // namespace trireme
