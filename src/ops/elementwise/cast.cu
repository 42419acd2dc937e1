#include "ops/base/map.cuh"
#include "ops/elementwise/cast_cuda.hpp"
#include "ops/elementwise/elementwise_body.hpp"

namespace trireme::ops::cuda {

template <typename From, typename To>
cudaError_t cast(std::int64_t count, const From* x, To* y, bool accumulate, cudaStream_t stream) {
  return map_elements(count, y, accumulate, stream, Same{}, x);
}

template cudaError_t cast(std::int64_t, const float*, bfloat16*, bool, cudaStream_t);
template cudaError_t cast(std::int64_t, const float*, float16*, bool, cudaStream_t);
template cudaError_t cast(std::int64_t, const bfloat16*, float*, bool, cudaStream_t);
template cudaError_t cast(std::int64_t, const float16*, float*, bool, cudaStream_t);

}  // namespace trireme::ops::cuda
