#pragma once

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

// Evenly spaced numbers: first + i * step. If `ends` is set, the second half is counted back from `last`, so that the last
// number is exact.
struct Line {
  double first = 0;
  double step = 0;
  double last = 0;
  bool ends = false;
};

}  // namespace ops
}  // namespace trireme
