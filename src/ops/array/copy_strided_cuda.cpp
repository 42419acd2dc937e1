#include "ops/array/copy_strided_cuda.hpp"

#include "device/cuda/check.hpp"
#include "device/cuda/stream.hpp"
#include "ops/array/copy_strided_on.hpp"
#include "ops/array/create_on.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {

template <>
void CopyStrided<Cuda>::move(const ArrangedCopy& copy, int element_bytes, const void* x, void* y) {
  const auto addresses = reinterpret_cast<std::uintptr_t>(x) | reinterpret_cast<std::uintptr_t>(y);
  std::int64_t alignment = element_bytes;
  while (alignment < 16 && addresses % static_cast<std::uintptr_t>(2 * alignment) == 0) alignment *= 2;
  ArrangedCopy words = copy;
  const int word_bytes = take_words(words, element_bytes, alignment);
  device::check_cuda(cuda::move_strided(words, word_bytes, x, y, device::native_stream()), "copy_strided");
}

template <>
template <typename T>
void CopyStrided<Cuda>::add(const ArrangedCopy& copy, const T* x, T* y) {
  device::check_cuda(cuda::add_strided(copy, x, y, device::native_stream()), "copy_strided");
}

template <>
template <typename T>
void CopyStrided<Cuda>::sum(const ArrangedCopy& copy, const T* x, T* y, bool accumulate) {
  device::check_cuda(cuda::sum_strided(copy, x, y, accumulate, device::native_stream()), "copy_strided");
}

template <>
void Creates<Cuda>::triangle(const TriangleSizes& sizes, int element_bytes, std::int64_t count, const void* x, void* y) {
  const std::string_view op = sizes.upper ? "triu" : "tril";
  device::check_cuda(cuda::take_triangle(sizes, element_bytes, count, x, y, device::native_stream()), op);
}

template <>
template <typename T>
void Creates<Cuda>::line(const FillLine<T>& body) {
  device::check_cuda(cuda::fill_line(body, device::native_stream()), "fill_line");
}

TRIREME_INSTANTIATE(ELEMENTS, copy_strided, Cuda)
TRIREME_INSTANTIATE(ELEMENTS, move_elements, Cuda)
TRIREME_INSTANTIATE(FLOATS, move_gradient, Cuda)
TRIREME_INSTANTIATE(ELEMENTS, take_triangle, Cuda)
TRIREME_INSTANTIATE(NUMBERS, fill_line, Cuda)
TRIREME_INSTANTIATE(ELEMENTS, fill_eye, Cuda)

}  // namespace trireme::ops
