#pragma once

#include <cstdint>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {
namespace ops {

// How one dim of an image is resized.
struct ResizedDim {
  std::int64_t in = 0;   // pixels of x
  std::int64_t out = 0;  // pixels of y
  double scale = 1;      // distance between pixels of y, in pixels of x
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
