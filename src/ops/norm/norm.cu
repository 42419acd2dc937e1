#include "ops/base/rows.cuh"
#include "ops/norm/norm_cuda.hpp"

namespace trireme::ops::cuda {
namespace {

// A block for each part of the rows. Where they fit, its sums are kept in the multiprocessor's own memory until the end.
template <typename Body, typename A>
__global__ void __launch_bounds__(device::threads_per_block)
    norm_gradient(Body body, std::int64_t rows, A* dweights, A* dbiases, bool sums_in_shared) {
  extern __shared__ __align__(16) unsigned char shared[];
  const std::int64_t width = body.pass.width;
  const std::int64_t part = blockIdx.x;
  A* dweight = dweights == nullptr ? nullptr : dweights + part * width;
  A* dbias = dbiases == nullptr ? nullptr : dbiases + part * width;
  A* dweight_sums = dweight == nullptr || !sums_in_shared ? dweight : reinterpret_cast<A*>(shared);
  A* dbias_sums = dbias == nullptr || !sums_in_shared ? dbias : reinterpret_cast<A*>(shared) + width;
  body(device::BlockTeam{}, rows * part / gridDim.x, rows * (part + 1) / gridDim.x, dweight_sums, dbias_sums);
  if (!sums_in_shared) return;
  __syncthreads();
  for (std::int64_t j = threadIdx.x; j < width; j += blockDim.x) {
    if (dweight != nullptr) dweight[j] = dweight_sums[j];
    if (dbias != nullptr) dbias[j] = dbias_sums[j];
  }
}

constexpr std::size_t most_shared_bytes = 40 << 10;  // of the 48 KiB that a kernel has without asking

template <typename Body, typename A>
cudaError_t launch_gradient(Body body, int pack, std::int64_t rows, std::int64_t parts, A* dweights, A* dbiases,
                            cudaStream_t stream) {
  const std::int64_t width = body.pass.width;
  const std::int64_t warps = (width / pack + device::warp_size - 1) / device::warp_size;
  constexpr std::int64_t most_warps = device::threads_per_block / device::warp_size;
  const auto threads = static_cast<unsigned>((warps < most_warps ? warps : most_warps) * device::warp_size);
  const std::size_t bytes = 2 * sizeof(A) * static_cast<std::size_t>(width);
  const bool in_shared = bytes <= most_shared_bytes;
  norm_gradient<<<static_cast<unsigned>(parts), threads, in_shared ? bytes : 0, stream>>>(body, rows, dweights, dbiases,
                                                                                          in_shared);
  return device::launched();
}

}  // namespace

template <typename T>
cudaError_t norm_forward(const NormForwardPointers<T>& pass, bool centers, std::int64_t rows, cudaStream_t stream) {
  return with_pack_width<T>(
      pass.width,
      [=](auto pack) {
        return centers ? each_row(rows, pass.width, stream, NormalizeRow<pack(), true, T>{pass})
                       : each_row(rows, pass.width, stream, NormalizeRow<pack(), false, T>{pass});
      },
      pass.x, pass.residual, pass.weight, pass.bias, pass.x_sum, pass.y);
}

template <typename T>
cudaError_t norm_backward(const NormBackwardPointers<T>& pass, bool centers, std::int64_t rows, std::int64_t parts,
                          Accumulate<T>* dweights, Accumulate<T>* dbiases, cudaStream_t stream) {
  return with_pack_width<T>(
      pass.width,
      [=](auto pack) {
        return centers
                   ? launch_gradient(NormGradientOfRows<pack(), true, T>{pass}, pack(), rows, parts, dweights, dbiases, stream)
                   : launch_gradient(NormGradientOfRows<pack(), false, T>{pass}, pack(), rows, parts, dweights, dbiases,
                                     stream);
      },
      pass.x, pass.weight, pass.dy, pass.dx, pass.dresidual, dweights, dbiases);
}

#define TRIREME_INSTANTIATE(T)                                                                                         \
  template cudaError_t norm_forward(const NormForwardPointers<T>&, bool, std::int64_t, cudaStream_t);                  \
  template cudaError_t norm_backward(const NormBackwardPointers<T>&, bool, std::int64_t, std::int64_t, Accumulate<T>*, \
                                     Accumulate<T>*, cudaStream_t)
TRIREME_INSTANTIATE(float);
TRIREME_INSTANTIATE(double);
TRIREME_INSTANTIATE(bfloat16);
TRIREME_INSTANTIATE(float16);

}  // namespace trireme::ops::cuda
