#include "device/cuda/launch.cuh"
#include "ops/recurrent/recurrent_cuda.hpp"

namespace trireme::ops::cuda {

template <typename T>
cudaError_t recurrent_step(const RecurrentStep<T>& step, cudaStream_t stream) {
  return device::for_each_index(step.rows.batch * step.rows.hidden, stream, step);
}

template <typename T>
cudaError_t recurrent_backward_step(const RecurrentBackwardStep<T>& step, cudaStream_t stream) {
  return device::for_each_index(step.rows.batch * step.rows.hidden, stream, step);
}

template cudaError_t recurrent_step(const RecurrentStep<float>&, cudaStream_t);
template cudaError_t recurrent_step(const RecurrentStep<double>&, cudaStream_t);
template cudaError_t recurrent_backward_step(const RecurrentBackwardStep<float>&, cudaStream_t);
template cudaError_t recurrent_backward_step(const RecurrentBackwardStep<double>&, cudaStream_t);

}  // namespace trireme::ops::cuda
