#include "ops/reduce/softmax_cuda.hpp"

#include "device/cuda/check.hpp"
#include "device/cuda/stream.hpp"
#include "ops/reduce/softmax_on.hpp"
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

TRIREME_INSTANTIATE_SOFTMAX(float, Cuda);
TRIREME_INSTANTIATE_SOFTMAX(double, Cuda);
TRIREME_INSTANTIATE_SOFTMAX(bfloat16, Cuda);
TRIREME_INSTANTIATE_SOFTMAX(float16, Cuda);

}  // namespace trireme::ops

namespace trireme {

TRIREME_INSTANTIATE_SOFTMAX_OF_TENSORS(float, Cuda);
TRIREME_INSTANTIATE_SOFTMAX_OF_TENSORS(double, Cuda);
TRIREME_INSTANTIATE_SOFTMAX_OF_TENSORS(bfloat16, Cuda);
TRIREME_INSTANTIATE_SOFTMAX_OF_TENSORS(float16, Cuda);

}  // namespace trireme
