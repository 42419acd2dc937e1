#include <numeric>

#include "ops/base/rows.cuh"
#include "ops/elementwise/rotary_cuda.hpp"

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

template cudaError_t rotary_angles(const RotaryAngles<float>&, std::int64_t, cudaStream_t);
template cudaError_t rotary_angles(const RotaryAngles<double>&, std::int64_t, cudaStream_t);
template cudaError_t rotate_rows(const RotaryRows<float>&, std::int64_t, cudaStream_t);
template cudaError_t rotate_rows(const RotaryRows<double>&, std::int64_t, cudaStream_t);
template cudaError_t rotate_rows(const RotaryRows<bfloat16>&, std::int64_t, cudaStream_t);
template cudaError_t rotate_rows(const RotaryRows<float16>&, std::int64_t, cudaStream_t);

}  // namespace trireme::ops::cuda
