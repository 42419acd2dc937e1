#include "ops/base/rows.cuh"
#include "ops/pooling/pooling_cuda.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops::cuda {
namespace {

std::int64_t num_x(const PoolImages& images, std::int64_t batch) {
  return batch * images.windows.rows.size * images.windows.columns.size * images.channels;
}
std::int64_t num_y(const PoolImages& images, std::int64_t batch) {
  return batch * images.windows.rows.windows * images.windows.columns.windows * images.channels;
}

}  // namespace

template <typename T>
cudaError_t max_pool(const PoolImages& images, std::int64_t batch, const T* x, T* y, std::int32_t* argmax,
                     cudaStream_t stream) {
  return with_pack_width<T>(
      images.channels,
      [=](auto pack) {
        return device::for_each_index(num_y(images, batch) / pack(), stream, MaxPool<pack(), T>{images, x, y, argmax});
      },
      x, y, argmax);
}

template <typename T>
cudaError_t max_pool_backward(const PoolImages& images, std::int64_t batch, const T* dy, const std::int32_t* argmax, T* dx,
                              bool accumulate, cudaStream_t stream) {
  return with_pack_width<T>(
      images.channels,
      [=](auto pack) {
        return device::for_each_index(num_x(images, batch) / pack(), stream,
                                      MaxPoolGradient<pack(), T>{images, dy, argmax, dx, accumulate});
      },
      dy, argmax, dx);
}

template <typename T>
cudaError_t average_pool(const PoolImages& images, std::int64_t batch, const T* x, T* y, cudaStream_t stream) {
  return with_pack_width<T>(
      images.channels,
      [=](auto pack) {
        return device::for_each_index(num_y(images, batch) / pack(), stream, AveragePool<pack(), T>{images, x, y});
      },
      x, y);
}

template <typename T>
cudaError_t average_pool_backward(const PoolImages& images, std::int64_t batch, const T* dy, T* dx, bool accumulate,
                                  cudaStream_t stream) {
  return with_pack_width<T>(
      images.channels,
      [=](auto pack) {
        return device::for_each_index(num_x(images, batch) / pack(), stream,
                                      AveragePoolGradient<pack(), T>{images, dy, dx, accumulate});
      },
      dy, dx);
}

TRIREME_INSTANTIATE(FLOATS, max_pool)
TRIREME_INSTANTIATE(FLOATS, max_pool_backward)
TRIREME_INSTANTIATE(FLOATS, average_pool)
TRIREME_INSTANTIATE(FLOATS, average_pool_backward)

}  // namespace trireme::ops::cuda
