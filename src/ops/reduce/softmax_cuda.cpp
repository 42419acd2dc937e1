#include "ops/reduce/softmax_cuda.hpp"

#include "device/cuda/check.hpp"
#include "device/cuda/stream.hpp"
#include "ops/reduce/softmax_on.hpp"
#include "precision/instantiate.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"

namespace trireme::ops {

using device::check_cuda;
using device::native_stream;

template <>
template <typename T>
void Softmax<Cuda>::forward(SoftmaxKind kind, std::int64_t rows, std::int64_t width, const T* x, T* y) {
  check_cuda(cuda::softmax(kind == SoftmaxKind::log_softmax, rows, width, x, y, native_stream()), "softmax");
}

template <>
template <typename T>
void Softmax<Cuda>::backward(SoftmaxKind kind, std::int64_t rows, std::int64_t width, const T* y, const T* dy, T* dx,
                             bool accumulate) {
  check_cuda(cuda::softmax_backward(kind == SoftmaxKind::log_softmax, rows, width, y, dy, dx, accumulate, native_stream()),
             "softmax_backward");
}

TRIREME_INSTANTIATE(FLOATS, softmax, Cuda)
TRIREME_INSTANTIATE(FLOATS, softmax_backward, Cuda)
TRIREME_INSTANTIATE(FLOATS, log_softmax, Cuda)
TRIREME_INSTANTIATE(FLOATS, log_softmax_backward, Cuda)

}  // namespace trireme::ops

namespace trireme {

TRIREME_INSTANTIATE(FLOATS, softmax, Cuda)
TRIREME_INSTANTIATE(FLOATS, log_softmax, Cuda)

}  // namespace trireme
