#include <numeric>

#include "ops/base/rows.cuh"
#include "ops/elementwise/rotary_cuda.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops::cuda {

template <typename A>
cudaError_t rotary_angles(const RotaryAngles<A>& angles, std::int64_t time, cudaStream_t stream) {
  return device::for_each_index(time * angles.half, stream, angles);
}

template <typename T>
cudaError_t rotate_rows(const RotaryRows<T>& rows, std::int64_t count, cudaStream_t stream) {
  return with_pack_width<T>(
      std::gcd(rows.half, rows.width),
      [=](auto pack) { return each_row(count, rows.width, stream, RotateRow<pack(), T>{rows}); }, rows.cosines, rows.sines,
      rows.x, rows.y);
}

TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, rotary_angles)
TRIREME_INSTANTIATE(FLOATS, rotate_rows)

}  // namespace trireme::ops::cuda
