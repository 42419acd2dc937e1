#pragma once

#include <cstdint>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

// One dim of an image that is resized.
struct ResizedDim {
  std::int64_t in = 0;   // pixels of x
  std::int64_t out = 0;  // of y
  double scale = 1;      // of a pixel of y, in those of x
};

struct Interpolation {
  std::int64_t images = 0;  // batch * channels
  ResizedDim height;
  ResizedDim width;
  bool bilinear = false;
  bool align_corners = false;
};

}  // namespace ops
}  // namespace trireme
