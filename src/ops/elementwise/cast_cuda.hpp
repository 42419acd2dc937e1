#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace trireme::ops::cuda {

// For the pairs of types of ops/elementwise/cast.hpp.
template <typename From, typename To>
cudaError_t cast(std::int64_t count, const From* x, To* y, bool accumulate, cudaStream_t stream);

}  // namespace trireme::ops::cuda
