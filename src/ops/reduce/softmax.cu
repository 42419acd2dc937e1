#include "ops/base/rows.cuh"
#include "ops/reduce/softmax_body.hpp"
#include "ops/reduce/softmax_cuda.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops::cuda {

template <typename T>
cudaError_t softmax(bool logarithm, std::int64_t rows, std::int64_t width, const T* x, T* y, cudaStream_t stream) {
  return with_pack_width<T>(
      width,
      [=](auto pack) {
        return logarithm ? each_row(rows, width, stream, SoftmaxRow<pack(), true, T>{x, y, width})
                         : each_row(rows, width, stream, SoftmaxRow<pack(), false, T>{x, y, width});
      },
      x, y);
}

template <typename T>
cudaError_t softmax_backward(bool logarithm, std::int64_t rows, std::int64_t width, const T* y, const T* dy, T* dx,
                             bool accumulate, cudaStream_t stream) {
  return with_pack_width<T>(
      width,
      [=](auto pack) {
        return logarithm ? each_row(rows, width, stream, SoftmaxGradientRow<pack(), true, T>{y, dy, dx, accumulate, width})
                         : each_row(rows, width, stream, SoftmaxGradientRow<pack(), false, T>{y, dy, dx, accumulate, width});
      },
      y, dy, dx);
}

TRIREME_INSTANTIATE(FLOATS, softmax)
TRIREME_INSTANTIATE(FLOATS, softmax_backward)

}  // namespace trireme::ops::cuda
