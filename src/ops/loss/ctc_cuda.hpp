#pragma once

#include <cuda_runtime_api.h>

#include "ops/loss/ctc_body.hpp"

// Launches: T is float or double.
namespace trireme::ops::cuda {

template <typename T>
cudaError_t ctc_loss(const CtcForward<T>& pass, cudaStream_t stream);
template <typename T>
cudaError_t ctc_loss_backward(const CtcBackward<T>& pass, cudaStream_t stream);

}  // namespace trireme::ops::cuda
