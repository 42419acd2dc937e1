#include "ops/index/indexing_cuda.hpp"

#include "device/cuda/check.hpp"
#include "device/cuda/stream.hpp"
#include "ops/index/indexing_on.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {
namespace {

IndexingSizes sizes_of(const Indexing& indexing) {
  return {.outer = indexing.outer,
          .rows = indexing.rows,
          .places = indexing.places,
          .inner = indexing.inner,
          .shared = indexing.shared};
}

}  // namespace

template <>
void Indexed<Cuda>::require_range(const Indexing&, const Tensor<std::int64_t, Cuda>&) {}  // the host does not wait

template <>
template <typename T>
void Indexed<Cuda>::gather(const Indexing& indexing, const T* x, const Tensor<std::int64_t, Cuda>& index, T* y,
                           bool accumulate) {
  const GatherElements<T> body{sizes_of(indexing), x, index.data(), y, accumulate};
  device::check_cuda(cuda::gather_elements(body, device::native_stream()), indexing.name);
}

template <>
template <typename T>
void Indexed<Cuda>::scatter(ScatterKind kind, const Indexing& indexing, const T* source, const std::int64_t* index, T* y) {
  const IndexingSizes sizes = sizes_of(indexing);
  if (kind == ScatterKind::put) {
    const ScatterLine<false, T> body{sizes, owners_of_line(sizes), source, index, y};
    return device::check_cuda(cuda::put_lines(body, device::native_stream()), indexing.name);
  }
  if (kind != ScatterKind::add) {
    const ScatterExtremeLine<T> body{sizes, owners_of_line(sizes), source, index, y, kind == ScatterKind::largest};
    return device::check_cuda(cuda::extreme_lines(body, device::native_stream()), indexing.name);
  }
  if constexpr (std::is_same_v<T, Accumulate<T>>) {
    const ScatterLine<true, T> body{sizes, owners_of_line(sizes), source, index, y};
    device::check_cuda(cuda::add_lines(body, device::native_stream()), indexing.name);
  }
}

template <>
template <typename T>
void Indexed<Cuda>::scatter_backward(const Indexing& indexing, T* dy, const std::int64_t* index, T* dsource) {
  const IndexingSizes sizes = sizes_of(indexing);
  const ScatterLineBackward<T> body{sizes, owners_of_line(sizes), dy, index, dsource};
  device::check_cuda(cuda::scatter_lines_backward(body, device::native_stream()), indexing.name);
}

template <>
void Indexed<Cuda>::widen(std::int64_t count, const std::int32_t* index, std::int64_t* wide) {
  device::check_cuda(cuda::widen_index(count, {index, wide}, device::native_stream()), "an index");
}

TRIREME_INSTANTIATE(NUMBERS, gather, Cuda)
TRIREME_INSTANTIATE(NUMBERS, scatter_add, Cuda)
TRIREME_INSTANTIATE(NUMBERS, scatter, Cuda)
TRIREME_INSTANTIATE(NUMBERS, scatter_extreme, Cuda)
TRIREME_INSTANTIATE(NUMBERS, scatter_backward, Cuda)
TRIREME_INSTANTIATE(WHOLE_NUMBERS, wide_index, Cuda)

}  // namespace trireme::ops
