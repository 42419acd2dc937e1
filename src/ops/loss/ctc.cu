#include "ops/base/rows.cuh"
#include "ops/loss/ctc_body.hpp"
#include "ops/loss/ctc_cuda.hpp"

namespace trireme::ops::cuda {

template <typename T>
cudaError_t ctc_loss(const CtcForward<T>& pass, cudaStream_t stream) {
  return each_row_by_warp(pass.samples.batch, stream, pass);
}

template <typename T>
cudaError_t ctc_loss_backward(const CtcBackward<T>& pass, cudaStream_t stream) {
  return each_row_by_warp(pass.samples.batch, stream, pass);
}

#define TRIREME_INSTANTIATE(T)                                       \
  template cudaError_t ctc_loss(const CtcForward<T>&, cudaStream_t); \
  template cudaError_t ctc_loss_backward(const CtcBackward<T>&, cudaStream_t)
TRIREME_INSTANTIATE(float);
TRIREME_INSTANTIATE(double);

}  // namespace trireme::ops::cuda
