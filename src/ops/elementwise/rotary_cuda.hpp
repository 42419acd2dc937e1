#pragma once

#include <cuda_runtime_api.h>

#include "ops/elementwise/rotary_body.hpp"

// Launches: T is float, double, bfloat16 or float16.
namespace trireme::ops::cuda {

// Fills cosines and sines [time, half] for a rotation.
template <typename A>
cudaError_t rotary_angles(const RotaryAngles<A>& angles, std::int64_t time, cudaStream_t stream);

template <typename T>
cudaError_t rotate_rows(const RotaryRows<T>& rows, std::int64_t count, cudaStream_t stream);

}  // namespace trireme::ops::cuda
