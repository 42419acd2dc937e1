#pragma once

#include "device/cuda/check.hpp"
#include "device/cuda/stream.hpp"
#include "ops/embedding/embedding_cuda.hpp"
#include "ops/embedding/embedding_on.hpp"

namespace trireme::ops::cuda {

// dweight[index - first] += dy for indices in the range `of`; without `accumulate` all other rows become zero.
template <typename T>
void scatter_gradients(const IndexedRows& of, const EmbeddingSizes& sizes, const std::int32_t* index, const T* dy, T* dweight,
                       bool accumulate) {
  constexpr std::string_view op = "embedding_backward";
  if (!accumulate) {
    const T zero = 0;
    device::fill(Cuda{}, dweight, &zero, sizeof(T), static_cast<std::size_t>(sizes.rows * sizes.width));
  }
  const Tensor<std::int32_t, Cuda> orders({4, sizes.places});
  const Tensor<std::int32_t, Cuda> counts({num_sort_counts(sizes.places)});
  const auto order = [&](std::int64_t row) { return orders.data() + row * sizes.places; };
  const SortMemory memory{.first = {order(0), order(1)}, .second = {order(2), order(3)}, .tile_digits = counts.data()};
  SortedIndex sorted{};
  device::check_cuda(sort_index(index, sizes.places, of, memory, sorted, device::native_stream()), op);
  const Tensor<T, Cuda> continued({num_gradient_chunks(sizes.places), sizes.width});
  device::check_cuda(
      scatter_rows(sorted, sizes.places, dy, sizes.rows, sizes.width, dweight, continued.data(), device::native_stream()), op);
}

}  // namespace trireme::ops::cuda
