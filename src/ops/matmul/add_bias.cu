#include "ops/base/rows.cuh"
#include "ops/matmul/add_bias_body.hpp"
#include "ops/matmul/add_bias_cuda.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops::cuda {

template <typename T>
cudaError_t add_bias(T* y, const Accumulate<T>* bias, std::int64_t count, std::int64_t width, cudaStream_t stream) {
  return with_pack_width<T>(
      width,
      [=](auto pack) {
        return device::for_each_index(count / pack(), stream, AddBias<pack(), T>{y, bias, width});
      },
      y, bias);
}
TRIREME_INSTANTIATE(FLOATS, add_bias)

}  // namespace trireme::ops::cuda
