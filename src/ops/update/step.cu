#include "device/cuda/launch.cuh"
#include "ops/update/step_cuda.hpp"

namespace trireme::ops::cuda {

template <typename Body>
cudaError_t each_index(std::int64_t count, const Body& body, cudaStream_t stream) {
  return device::for_each_index(count, stream, body);
}
template cudaError_t each_index(std::int64_t, const AddToTotals<float>&, cudaStream_t);
template cudaError_t each_index(std::int64_t, const AddToTotals<double>&, cudaStream_t);
template cudaError_t each_index(std::int64_t, const SummarizeStep&, cudaStream_t);
template cudaError_t each_index(std::int64_t, const CopyIf&, cudaStream_t);

cudaError_t decide_step(const DecideStep& body, cudaStream_t stream) { return device::for_each_index(1, stream, body); }

cudaError_t count_updates(const CountUpdates& body, std::int64_t parameters, cudaStream_t stream) {
  return device::for_each_index(parameters, stream, body);
}

cudaError_t unscale_step(const UnscaleStep& body, cudaStream_t stream) { return device::for_each_index(1, stream, body); }

cudaError_t update_loss_scale(const UpdateLossScale& body, cudaStream_t stream) {
  return device::for_each_index(1, stream, body);
}

}  // namespace trireme::ops::cuda
