#include "device/cuda/launch.cuh"
#include "ops/recurrent/recurrent_cuda.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops::cuda {

template <typename T>
cudaError_t recurrent_step(const RecurrentStep<T>& step, cudaStream_t stream) {
  return device::for_each_index(step.rows.batch * step.rows.hidden, stream, step);
}

template <typename T>
cudaError_t recurrent_backward_step(const RecurrentBackwardStep<T>& step, cudaStream_t stream) {
  return device::for_each_index(step.rows.batch * step.rows.hidden, stream, step);
}

TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, recurrent_step)
TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, recurrent_backward_step)

}  // namespace trireme::ops::cuda
