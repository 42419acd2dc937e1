#include "ops/search/sort_cuda.hpp"

#include <bit>

#include "device/cuda/check.hpp"
#include "device/cuda/stream.hpp"
#include "ops/search/sort_on.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {

using device::check_cuda;
using device::native_stream;

template <>
template <typename T>
void Sort<Cuda>::run(const ReduceSizes& sizes, const T* x, bool descending, std::int64_t taken, T* values,
                     std::int64_t* indices) {
  const auto length = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(sizes.reduced)));
  const Tensor<std::int64_t, Cuda> room({sizes.results(), length, sizeof(Ranked) / sizeof(std::int64_t)});
  auto* elements = reinterpret_cast<Ranked*>(room.data());
  check_cuda(cuda::rank_elements(RankElements<T>{sizes, x, descending, length, elements}, native_stream()), "sort");
  for (std::int64_t run = 2; run <= length; run *= 2) {
    for (std::int64_t distance = run / 2; distance > 0; distance /= 2) {
      check_cuda(cuda::compare_elements(sizes.results(), {length, run, distance, elements}, native_stream()), "sort");
    }
  }
  check_cuda(cuda::take_ranked(TakeRanked<T>{sizes, length, taken, elements, x, values, indices}, native_stream()), "sort");
}

}  // namespace trireme::ops

namespace trireme {

TRIREME_INSTANTIATE(NUMBERS, sort, Cuda)
TRIREME_INSTANTIATE(NUMBERS, argsort, Cuda)
TRIREME_INSTANTIATE(NUMBERS, topk, Cuda)
TRIREME_INSTANTIATE(NUMBERS, ops::sort, Cuda)

}  // namespace trireme
