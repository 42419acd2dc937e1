#include "ops/base/rows.cuh"
#include "ops/matmul/add_bias_body.hpp"
#include "ops/matmul/add_bias_cuda.hpp"

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
template cudaError_t add_bias(float*, const float*, std::int64_t, std::int64_t, cudaStream_t);
template cudaError_t add_bias(double*, const double*, std::int64_t, std::int64_t, cudaStream_t);
template cudaError_t add_bias(bfloat16*, const float*, std::int64_t, std::int64_t, cudaStream_t);
template cudaError_t add_bias(float16*, const float*, std::int64_t, std::int64_t, cudaStream_t);

}  // namespace trireme::ops::cuda
