#include "ops/elementwise/rotary_cuda.hpp"

#include "device/cuda/check.hpp"
#include "device/cuda/stream.hpp"
#include "ops/elementwise/rotary_on.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {

using device::check_cuda;
using device::native_stream;

template <>
template <typename T>
void Rotary<Cuda>::rotate(const RotarySizes& sizes, const RotaryOptions& options, double direction, const std::int32_t* starts,
                          const T* x, T* y) {
  using A = Accumulate<T>;
  const std::int64_t half = options.size / 2;
  const Tensor<A, Cuda> cosines({sizes.time, half});
  const Tensor<A, Cuda> sines({sizes.time, half});
  const RotaryAngles<A> angles{.half = half,
                               .first_position = options.first_position,
                               .base = options.base,
                               .direction = direction,
                               .cosines = cosines.data(),
                               .sines = sines.data(),
                               .scaling = options.scaling};
  check_cuda(cuda::rotary_angles(angles, sizes.time, native_stream()), "rotary");
  const RotaryRows<T> rows{.cosines = cosines.data(),
                           .sines = sines.data(),
                           .half = half,
                           .heads = options.heads,
                           .time = sizes.time,
                           .width = sizes.width,
                           .x = x,
                           .y = y,
                           .starts = starts};
  check_cuda(cuda::rotate_rows(rows, sizes.batch * sizes.time, native_stream()), "rotary");
}

TRIREME_INSTANTIATE(FLOATS, rotary, Cuda)
TRIREME_INSTANTIATE(FLOATS, rotary_backward, Cuda)

}  // namespace trireme::ops
