#include "ops/cuda/embedding.hpp"

#include "device/cuda/check.hpp"
#include "device/cuda/stream.hpp"
#include "ops/embedding_on.hpp"

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
  if (!accumulate) {
    const T zero = 0;
    device::fill(Cuda{}, dweight, &zero, sizeof(T), static_cast<std::size_t>(sizes.rows * sizes.width));
  }
  const Tensor<std::int32_t, Cuda> orders({4, sizes.places});
  const Tensor<std::int32_t, Cuda> counts({cuda::num_sort_counts(sizes.places)});
  const auto order = [&](std::int64_t row) { return orders.data() + row * sizes.places; };
  const cuda::SortMemory memory{.first = {order(0), order(1)}, .second = {order(2), order(3)}, .tile_digits = counts.data()};
  cuda::SortedIndex sorted{};
  check_cuda(cuda::sort_index(index, sizes.places, sizes.rows, padding, memory, sorted, native_stream()), "embedding_backward");
  const Tensor<T, Cuda> continued({cuda::num_gradient_chunks(sizes.places), sizes.width});
  check_cuda(cuda::scatter_rows(sorted, sizes.places, dy, sizes.rows, sizes.width, dweight, continued.data(), native_stream()),
             "embedding_backward");
}

TRIREME_INSTANTIATE_EMBEDDING(float, Cuda);
TRIREME_INSTANTIATE_EMBEDDING(double, Cuda);

}  // namespace trireme::ops
