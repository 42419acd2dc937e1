#include "ops/base/rows.cuh"
#include "ops/loss/ctc_body.hpp"
#include "ops/loss/ctc_cuda.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops::cuda {

template <typename T>
cudaError_t ctc_loss(const CtcForward<T>& pass, cudaStream_t stream) {
  return each_row_by_warp(pass.samples.batch, stream, pass);
}

template <typename T>
cudaError_t ctc_loss_backward(const CtcBackward<T>& pass, cudaStream_t stream) {
  return each_row_by_warp(pass.samples.batch, stream, pass);
}

TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, ctc_loss)
TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, ctc_loss_backward)

}  // namespace trireme::ops::cuda
