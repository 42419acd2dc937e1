#pragma once

#include <cstdint>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

// The rows or classes of a tensor begin at number `first` of the vocabulary, which has `total`.
struct VocabRange {
  std::int64_t first = 0;
  std::int64_t total = 0;
};

}  // namespace ops
}  // namespace trireme
