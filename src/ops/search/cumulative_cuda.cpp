#include "ops/search/cumulative_cuda.hpp"

#include "device/cuda/check.hpp"
#include "device/cuda/stream.hpp"
#include "ops/reduce/reductions_cuda.hpp"
#include "ops/search/cumulative_on.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {

using device::check_cuda;
using device::native_stream;

template <>
template <typename T>
void Cumulate<Cuda>::run(Accumulation kind, const ReduceSizes& sizes, bool backwards, const T* x, SumOf<T>* y,
                         bool accumulate) {
  const CumulateChunks<T> of{kind, sizes, cuda::num_chunks(sizes), backwards, x};
  const Tensor<Wide<T>, Cuda> totals({sizes.results() * of.chunks});
  if (of.chunks > 1) check_cuda(cuda::chunk_totals(ChunkTotals<T>{of, totals.data()}, native_stream()), "cumsum");
  check_cuda(cuda::cumulate_chunk(CumulateChunk<T, SumOf<T>>{of, totals.data(), y, accumulate}, native_stream()), "cumsum");
}

template <>
template <typename T>
void Cumulate<Cuda>::product_gradient(const CumprodGradient<T>& body) {
  check_cuda(cuda::cumprod_gradient(body, native_stream()), "cumprod_backward");
}

}  // namespace trireme::ops

namespace trireme {

TRIREME_INSTANTIATE(NUMBERS, cumsum, Cuda)
TRIREME_INSTANTIATE(NUMBERS, ops::cumulate, Cuda)
TRIREME_INSTANTIATE(FLOATS, cumprod, Cuda)
TRIREME_INSTANTIATE(FLOATS, ops::cumprod_backward, Cuda)

}  // namespace trireme
