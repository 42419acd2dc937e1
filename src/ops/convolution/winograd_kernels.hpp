#pragma once

#include <cstdint>

#include "trireme/device/isa.hpp"

namespace trireme::ops {

// Winograd's minimal filtering F(4 x 4, 3 x 3) (Lavin, Gray 2015, arXiv 1509.09308), in its notation: a tile of 4 x 4 pixels of
// the result is A^T [(G g G^T) * (B^T d B)] A for the 6 x 6 pixels d below it. Each function transforms all channels of one
// tile, or all inputs of one output channel; element k < 36 of a transformed tile is k * step floats after element 0. Channels
// are a multiple of 16. Pixels are given as one pointer each, row after row.
struct WinogradKernels {
  void (*transform_image)(const float* const* pixels, std::int64_t channels, float* to, std::int64_t step);  // B^T d B
  // A^T m A, plus the bias unless null. A pixel may be the memory of element 0 of the same tile.
  void (*transform_result)(const float* from, std::int64_t step, std::int64_t channels, const float* bias,
                           float* const* pixels);
  void (*transform_gradient)(const float* const* pixels, std::int64_t channels, float* to, std::int64_t step);  // A dy A^T
  // G g G^T of weights [in, 3, 3], rotated by 180 degrees if `turned`.
  void (*transform_weight)(const float* weight, std::int64_t in, bool turned, float* to, std::int64_t step);
  void (*weight_gradient)(const float* from, std::int64_t step, std::int64_t in, float* dweight);  // G^T u G
};

TRIREME_KERNEL_TABLE(WinogradKernels, winograd_kernels)

}  // namespace trireme::ops
