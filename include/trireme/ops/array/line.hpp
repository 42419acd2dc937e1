#pragma once

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

// Numbers at even distances: first + i * step, in the second half of those that end at `last` counted from there.
struct Line {
  double first = 0;
  double step = 0;
  double last = 0;
  bool ends = false;
};

}  // namespace ops
}  // namespace trireme
