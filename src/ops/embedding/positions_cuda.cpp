#include "ops/embedding/positions_cuda.hpp"

#include "device/cuda/check.hpp"
#include "device/cuda/stream.hpp"
#include "trireme/ops/embedding/positions.hpp"

namespace trireme::ops {

template <>
void positions(std::int64_t first, std::int64_t time, Tensor<std::int32_t, Cuda>& y) {
  device::check_cuda(cuda::positions(first, time, y.numel(), y.data(), device::native_stream()), "positions");
}

}  // namespace trireme::ops
