#include "ops/loss/ctc_cuda.hpp"

#include "device/cuda/check.hpp"
#include "device/cuda/stream.hpp"
#include "ops/loss/ctc_on.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {

using device::check_cuda;
using device::native_stream;

template <>
template <typename T>
void Ctc<Cuda>::check(const CtcSamples<T>&) {}  // the host does not wait: invalid samples become NaN

template <>
template <typename T>
void Ctc<Cuda>::forward(const CtcSamples<T>& samples, T* losses, double* alpha) {
  check_cuda(cuda::ctc_loss(CtcForward<T>{samples, losses, alpha}, native_stream()), "ctc_loss");
}

template <>
template <typename T>
void Ctc<Cuda>::backward(const CtcBackward<T>& pass) {
  check_cuda(cuda::ctc_loss_backward(pass, native_stream()), "ctc_loss_backward");
}

TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, ctc_loss, Cuda)
TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, ctc_loss_backward, Cuda)

}  // namespace trireme::ops
