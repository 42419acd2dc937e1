#include "ops/base/rows.cuh"
#include "ops/norm/norm_cuda.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops::cuda {
namespace {

// A block for each part of the rows. If its sums fit into shared memory, they are kept there until the end.
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

constexpr std::size_t most_shared_bytes = 40 << 10;  // of the 48 KiB that every kernel may use

// The threads of a block: one for each pack of a row, in whole warps.
unsigned threads_of_row(std::int64_t packs) {
  constexpr std::int64_t warp = device::warp_size;
  const std::int64_t threads = packs == 0 ? warp : (packs + warp - 1) / warp * warp;
  return threads < device::threads_per_block ? static_cast<unsigned>(threads) : device::threads_per_block;
}

template <int Width, bool centers, typename T>
cudaError_t normalize_rows(const NormForwardPointers<T>& pass, std::int64_t rows, cudaStream_t stream) {
  const std::int64_t width = pass.width;
  if constexpr (Width > 1) {
    constexpr int of_thread = 128 / sizeof(Accumulate<T>);  // elements in 32 registers
    constexpr int packs = of_thread / Width;
    using InRegisters = NormalizeRow<Width, centers, T, RowInRegisters<Width, packs, T>>;
    using InTwiceAsMany = NormalizeRow<Width, centers, T, RowInRegisters<Width, 2 * packs, T>>;
    if (width <= of_thread * device::warp_size) return each_row_by_warp(rows, stream, InRegisters{pass});
    if (width <= 2 * of_thread * device::warp_size) return each_row_by_warp(rows, stream, InTwiceAsMany{pass});
    if (width <= of_thread * std::int64_t{device::threads_per_block}) return each_row_by_block(rows, stream, InRegisters{pass});
  }
  return each_row(rows, width, stream, NormalizeRow<Width, centers, T, RowInMemory<Width, T>>{pass});
}

}  // namespace

template <typename T>
std::int64_t num_norm_parts(std::int64_t rows, std::int64_t width) {
  constexpr std::int64_t pack = 16 / sizeof(T);
  constexpr std::int64_t threads = 512;  // that a multiprocessor runs at once with 128 registers each
  constexpr std::int64_t least_rows = 8;
  const std::int64_t most = device::multiprocessors * (threads / threads_of_row(width / pack));
  const std::int64_t parts = rows / least_rows < most ? rows / least_rows : most;
  return parts < 1 ? 1 : parts;
}

template <typename T>
cudaError_t norm_forward(const NormForwardPointers<T>& pass, bool centers, std::int64_t rows, cudaStream_t stream) {
  return with_pack_width<T>(
      pass.width,
      [=](auto pack) {
        return centers ? normalize_rows<pack(), true>(pass, rows, stream) : normalize_rows<pack(), false>(pass, rows, stream);
      },
      pass.x, pass.residual, pass.weight, pass.bias, pass.x_sum, pass.y);
}

template <typename T>
cudaError_t norm_backward(const NormBackwardPointers<T>& pass, bool centers, std::int64_t rows, std::int64_t parts,
                          Accumulate<T>* dweights, Accumulate<T>* dbiases, cudaStream_t stream) {
  return with_pack_width<T>(
      pass.width,
      [=](auto pack) {
        const unsigned threads = threads_of_row(pass.width / pack());
        const auto launch = [=](const auto& body, std::size_t shared_bytes) {
          norm_gradient<<<static_cast<unsigned>(parts), threads, shared_bytes, stream>>>(body, rows, dweights, dbiases,
                                                                                         shared_bytes > 0);
          return device::launched();
        };
        if constexpr (pack() > 1) {
          if (pass.width <= pack() * device::threads_per_block) {
            return centers ? launch(NormGradientInRegisters<pack(), true, T>{pass}, 0)
                           : launch(NormGradientInRegisters<pack(), false, T>{pass}, 0);
          }
        }
        std::size_t bytes = 2 * sizeof(Accumulate<T>) * static_cast<std::size_t>(pass.width);
        if (bytes > most_shared_bytes) bytes = 0;
        return centers ? launch(NormGradientOfRows<pack(), true, T>{pass}, bytes)
                       : launch(NormGradientOfRows<pack(), false, T>{pass}, bytes);
      },
      pass.x, pass.weight, pass.dy, pass.dx, pass.dresidual, dweights, dbiases);
}

TRIREME_INSTANTIATE(FLOATS, num_norm_parts)
TRIREME_INSTANTIATE(FLOATS, norm_forward)
TRIREME_INSTANTIATE(FLOATS, norm_backward)

}  // namespace trireme::ops::cuda
