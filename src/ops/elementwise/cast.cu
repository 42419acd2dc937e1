#include "ops/base/map.cuh"
#include "ops/elementwise/cast_body.hpp"
#include "ops/elementwise/cast_cuda.hpp"
#include "ops/elementwise/elementwise_body.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops::cuda {

template <typename From, typename To>
cudaError_t cast(std::int64_t count, const From* x, To* y, bool accumulate, cudaStream_t stream) {
  if constexpr (std::is_same_v<From, Accumulate<From>> && std::is_same_v<To, Accumulate<To>>) {
    return device::for_each_index(count, stream, CastElements<From, To>{x, y, accumulate});
  } else {
    return map_elements(count, y, accumulate, stream, Same{}, x);
  }
}

TRIREME_INSTANCE(float, cast, bfloat16)
TRIREME_INSTANCE(float, cast, float16)
TRIREME_INSTANCE(float, cast, double)
TRIREME_INSTANCE(double, cast, float)
TRIREME_INSTANTIATE(HALVES, cast, float)
TRIREME_INSTANTIATE(WHOLE_NUMBERS, cast, float)
TRIREME_INSTANTIATE(WHOLE_NUMBERS, cast, double)
TRIREME_INSTANCE(std::int32_t, cast, std::int64_t)
TRIREME_INSTANCE(std::int64_t, cast, std::int32_t)
TRIREME_INSTANCE(bool, cast, float)
TRIREME_INSTANCE(bool, cast, double)
TRIREME_INSTANCE(bool, cast, std::int32_t)
TRIREME_INSTANCE(bool, cast, std::int64_t)

}  // namespace trireme::ops::cuda
