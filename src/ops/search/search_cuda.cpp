#include "ops/search/search_cuda.hpp"

#include "device/cuda/check.hpp"
#include "device/cuda/stream.hpp"
#include "ops/reduce/reductions_cuda.hpp"
#include "ops/search/search_on.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {

using device::check_cuda;
using device::native_stream;

template <>
template <typename T>
void Search<Cuda>::first(const ReduceSizes& sizes, const T* x, const ExtremeOf<T>* extremes, std::int64_t* indices) {
  const std::int64_t parts = cuda::num_reduce_parts(sizes);
  const Tensor<std::int64_t, Cuda> of_parts({sizes.outer, parts, sizes.inner});
  check_cuda(cuda::first_extreme(FirstExtreme<T>{sizes, parts, x, extremes, of_parts.data()}, native_stream()), "argmax");
  const Tensor<std::int64_t, Cuda> first = min(of_parts, 1);
  device::copy_bytes(Cuda{}, indices, Cuda{}, first.data(), static_cast<std::size_t>(first.numel()) * sizeof(std::int64_t));
}

template <>
template <typename T>
void Search<Cuda>::take(std::int64_t count, const Take<T>& body) {
  check_cuda(cuda::take(count, body, native_stream()), "argmax");
}

template <>
template <typename T>
void Search<Cuda>::take_gradient(std::int64_t count, const TakeGradient<T>& body) {
  check_cuda(cuda::take_gradient(count, body, native_stream()), "take_backward");
}

template <>
template <typename T>
void Search<Cuda>::clear(T* x, std::int64_t count) {
  const T zero{};
  device::fill(Cuda{}, x, &zero, sizeof(T), static_cast<std::size_t>(count));
}

}  // namespace trireme::ops

namespace trireme {

TRIREME_INSTANTIATE(NUMBERS, argmax, Cuda)
TRIREME_INSTANTIATE(NUMBERS, argmin, Cuda)
TRIREME_INSTANTIATE(NUMBERS, max_with_index, Cuda)
TRIREME_INSTANTIATE(NUMBERS, min_with_index, Cuda)
TRIREME_INSTANTIATE(NUMBERS, ops::find_extremes, Cuda)
TRIREME_INSTANTIATE(FLOATS, ops::take_backward, Cuda)

}  // namespace trireme
