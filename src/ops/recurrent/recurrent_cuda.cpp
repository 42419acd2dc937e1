#include "ops/recurrent/recurrent_cuda.hpp"

#include "device/cuda/check.hpp"
#include "device/cuda/stream.hpp"
#include "ops/recurrent/recurrent_on.hpp"
#include "ops/recurrent/recurrent_steps.hpp"
#include "precision/instantiate.hpp"

// cuDNN's recurrent layers are not used: they read the lengths on the host, have no single reversed direction, and need all
// weights copied into one buffer in every step.
namespace trireme::ops {

using device::check_cuda;
using device::native_stream;

template <>
template <typename T>
void Recurrent<Cuda>::forward(const RecurrentForward<T, Cuda>& pass, const RecurrentRows& rows) {
  forward_steps(pass, rows,
                [](const RecurrentStep<T>& step) { check_cuda(cuda::recurrent_step(step, native_stream()), "recurrent"); });
}

template <>
template <typename T>
void Recurrent<Cuda>::backward(const RecurrentForward<T, Cuda>& pass, const RecurrentBackward<T, Cuda>& backward,
                               const RecurrentRows& rows) {
  backward_steps(pass, backward, rows, [](const RecurrentBackwardStep<T>& step) {
    check_cuda(cuda::recurrent_backward_step(step, native_stream()), "recurrent_backward");
  });
}

TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, recurrent, Cuda)
TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, recurrent_backward, Cuda)

}  // namespace trireme::ops
