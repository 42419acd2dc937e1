#include "ops/base/rows.cuh"
#include "ops/reduce/softmax_body.hpp"
#include "ops/reduce/softmax_cuda.hpp"

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

#define TRIREME_INSTANTIATE(T)                                                                \
  template cudaError_t softmax(bool, std::int64_t, std::int64_t, const T*, T*, cudaStream_t); \
  template cudaError_t softmax_backward(bool, std::int64_t, std::int64_t, const T*, const T*, T*, bool, cudaStream_t)
TRIREME_INSTANTIATE(float);
TRIREME_INSTANTIATE(double);
TRIREME_INSTANTIATE(bfloat16);
TRIREME_INSTANTIATE(float16);

}  // namespace trireme::ops::cuda
