#pragma once

#include <cuda_runtime_api.h>

#include "ops/update/step_body.hpp"

namespace trireme::ops::cuda {

// Body: AddToTotals of float and double, SummarizeStep, CopyIf.
template <typename Body>
cudaError_t each_index(std::int64_t count, const Body& body, cudaStream_t stream);

cudaError_t decide_step(const DecideStep& body, cudaStream_t stream);
cudaError_t count_updates(const CountUpdates& body, std::int64_t parameters, cudaStream_t stream);
cudaError_t unscale_step(const UnscaleStep& body, cudaStream_t stream);
cudaError_t update_loss_scale(const UpdateLossScale& body, cudaStream_t stream);

}  // namespace trireme::ops::cuda
