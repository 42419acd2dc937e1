#include "device/cuda/check.hpp"
#include "device/cuda/stream.hpp"
#include "ops/embedding/scatter_gradients_cuda.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {

using device::check_cuda;
using device::native_stream;

template <>
template <typename T>
void Embedding<Cuda>::forward(const EmbeddingSizes& sizes, const std::int32_t* index, const T* weight, T* y, bool accumulate) {
  check_cuda(cuda::gather_rows(index, sizes.places, weight, sizes.rows, sizes.width, y, accumulate, native_stream()),
             "embedding");
}

template <>
template <typename T>
void Embedding<Cuda>::backward(const EmbeddingSizes& sizes, const std::int32_t* index, const T* dy, T* dweight, bool accumulate,
                               std::int32_t padding) {
  cuda::scatter_gradients({.rows = sizes.rows, .first = 0, .padding = padding}, sizes, index, dy, dweight, accumulate);
}

TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, embedding, Cuda)
TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, embedding_backward, Cuda)

}  // namespace trireme::ops
