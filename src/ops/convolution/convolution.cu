#include "ops/base/rows.cuh"
#include "ops/convolution/convolution_cuda.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops::cuda {

template <typename T>
cudaError_t convolution(const ConvolutionForward<T>& body, cudaStream_t stream) {
  const ConvolutionShape& shape = body.sizes.shape;
  return device::for_each_index(shape.batch * shape.y.height * shape.y.width * shape.out, stream, body);
}

template <typename T>
cudaError_t convolution_data(const ConvolutionDataGradient<T>& body, cudaStream_t stream) {
  const ConvolutionShape& shape = body.sizes.shape;
  return device::for_each_index(shape.batch * shape.x.height * shape.x.width * shape.in, stream, body);
}

template <typename T>
cudaError_t convolution_weight(const ConvolutionWeightGradient<T>& body, cudaStream_t stream) {
  const ConvolutionShape& shape = body.sizes.shape;
  const std::int64_t weights = shape.out * (shape.in / shape.groups) * shape.kernel.height * shape.kernel.width;
  return each_row_by_block(weights, stream, body);
}

TRIREME_INSTANTIATE(FLOATS, convolution)
TRIREME_INSTANTIATE(FLOATS, convolution_data)
TRIREME_INSTANTIATE(FLOATS, convolution_weight)

}  // namespace trireme::ops::cuda
