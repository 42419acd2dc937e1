#include "ops/base/map.cuh"
#include "ops/elementwise/cast_body.hpp"
#include "ops/elementwise/cast_cuda.hpp"
#include "ops/elementwise/elementwise_body.hpp"

namespace trireme::ops::cuda {

template <typename From, typename To>
cudaError_t cast(std::int64_t count, const From* x, To* y, bool accumulate, cudaStream_t stream) {
  if constexpr (std::is_same_v<From, Accumulate<From>> && std::is_same_v<To, Accumulate<To>>) {
    return device::for_each_index(count, stream, CastElements<From, To>{x, y, accumulate});
  } else {
    return map_elements(count, y, accumulate, stream, Same{}, x);
  }
}

#define TRIREME_INSTANTIATE(From, To) template cudaError_t cast(std::int64_t, const From*, To*, bool, cudaStream_t)
TRIREME_INSTANTIATE(float, bfloat16);
TRIREME_INSTANTIATE(float, float16);
TRIREME_INSTANTIATE(bfloat16, float);
TRIREME_INSTANTIATE(float16, float);
TRIREME_INSTANTIATE(float, double);
TRIREME_INSTANTIATE(double, float);
TRIREME_INSTANTIATE(bool, float);
TRIREME_INSTANTIATE(bool, double);
TRIREME_INSTANTIATE(bool, std::int32_t);
TRIREME_INSTANTIATE(bool, std::int64_t);
TRIREME_INSTANTIATE(std::int32_t, float);
TRIREME_INSTANTIATE(std::int32_t, double);
TRIREME_INSTANTIATE(std::int32_t, std::int64_t);
TRIREME_INSTANTIATE(std::int64_t, float);
TRIREME_INSTANTIATE(std::int64_t, double);
TRIREME_INSTANTIATE(std::int64_t, std::int32_t);

}  // namespace trireme::ops::cuda
