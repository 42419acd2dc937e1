#include "ops/base/map.cuh"
#include "ops/base/rows.cuh"
#include "ops/norm/batch_norm_cuda.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {
namespace kernels {

template <typename Body, int blocks>
__global__ void __launch_bounds__(device::threads_per_block, blocks) channel_parts(Body body) {
  extern __shared__ __align__(16) double scratch[];
  body(device::BlockTeam{}, blockIdx.x, scratch);
}

template <typename Body>
__global__ void __launch_bounds__(device::threads_per_block, Body::blocks_of_multiprocessor)
    channel_strands(std::int64_t threads, Body body) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * device::threads_per_block + threadIdx.x;
  if (i < threads) body(i);
}

}  // namespace kernels

namespace cuda {
namespace {

// A block for each part.
template <int Width, typename Terms>
cudaError_t sum_parts(const Terms& terms, std::int64_t rows, std::int64_t channels, std::int64_t parts, double* sums,
                      cudaStream_t stream) {
  using Body = SumChannelParts<Width, Terms>;
  const std::size_t scratch = sizeof(double) * Body::scratch_of_thread * device::threads_per_block;
  kernels::channel_parts<Body, Terms::blocks_of_multiprocessor>
      <<<static_cast<unsigned>(parts), device::threads_per_block, scratch, stream>>>(Body{terms, rows, channels, parts, sums});
  return device::launched();
}

// Threads get enough rows for their coefficients to be worth it; there are not more threads than the GPU runs at once.
ChannelStrands strands_of(std::int64_t rows, std::int64_t channels, int width, std::int64_t blocks) {
  constexpr std::int64_t least_rows = 4;
  const std::int64_t packs = channels / width;
  const std::int64_t most = blocks * device::threads_per_block / packs;
  const std::int64_t strands = rows / least_rows < most ? rows / least_rows : most;
  return {.rows = rows, .channels = channels, .strands = strands < 1 ? 1 : strands};
}

// Calls Body{strands, pass} for all strands.
template <typename Body, typename Pass>
cudaError_t each_strand(const Pass& pass, std::int64_t rows, std::int64_t channels, int width, cudaStream_t stream) {
  if (rows == 0) return cudaSuccess;
  const ChannelStrands strands = strands_of(rows, channels, width, device::multiprocessors * Body::blocks_of_multiprocessor);
  const std::int64_t threads = strands.strands * channels / width;
  const auto blocks = static_cast<unsigned>((threads + device::threads_per_block - 1) / device::threads_per_block);
  kernels::channel_strands<<<blocks, device::threads_per_block, 0, stream>>>(threads, Body{strands, pass});
  return device::launched();
}

// Calls launch(integral constant) with `counts`.
template <typename Launch>
cudaError_t with_counts(Counts counts, Launch launch) {
  switch (counts) {
    case Counts::everywhere: return launch(std::integral_constant<Counts, Counts::everywhere>{});
    case Counts::where_y: return launch(std::integral_constant<Counts, Counts::where_y>{});
    case Counts::where_x: return launch(std::integral_constant<Counts, Counts::where_x>{});
  }
  return cudaErrorInvalidValue;
}

}  // namespace

std::int64_t num_channel_parts(std::int64_t rows, std::int64_t channels) {
  constexpr std::int64_t elements = 8 * 8 * device::threads_per_block;  // least elements of a part
  constexpr std::int64_t most = 4 * device::multiprocessors;
  const std::int64_t parts = rows * channels / elements;
  return parts < 1 ? 1 : parts < most ? parts : most;
}

template <typename T>
cudaError_t sum_channel_parts(const T* x, std::int64_t rows, std::int64_t channels, std::int64_t parts, double* sums,
                              cudaStream_t stream) {
  return with_pack_width<T>(
      channels, [=](auto pack) { return sum_parts<pack()>(ChannelMoments<pack(), T>{x}, rows, channels, parts, sums, stream); },
      x);
}

template <typename T>
cudaError_t sum_channel_gradient_parts(const BatchNormSumPointers<T>& pass, std::int64_t rows, std::int64_t channels,
                                       std::int64_t parts, double* sums, cudaStream_t stream) {
  return with_pack_width<T>(
      channels,
      [=](auto pack) {
        return with_counts(pass.of.counts, [=](auto counts) {
          return sum_parts<pack()>(ChannelGradientMoments<pack(), counts(), T>{pass}, rows, channels, parts, sums, stream);
        });
      },
      pass.of.x, pass.of.y, pass.of.dy, pass.dresidual);
}

template <typename A>
cudaError_t batch_statistics(const BatchStatistics<A>& body, cudaStream_t stream) {
  return by_one_block(stream, body);
}

template <typename A>
cudaError_t running_statistics(const RunningStatisticsOfChannel<A>& body, std::int64_t channels, cudaStream_t stream) {
  return device::for_each_index(channels, stream, body);
}

template <typename A>
cudaError_t batch_norm_weight_gradient(const double* sums, std::int64_t channels, A* gradient, bool accumulate,
                                       cudaStream_t stream) {
  return map_elements(channels, gradient, accumulate, stream, RoundedSum<A>{}, sums);
}

template <typename T>
cudaError_t batch_norm(const BatchNormPointers<T>& pass, std::int64_t rows, std::int64_t channels, cudaStream_t stream) {
  return with_pack_width<T>(
      channels, [=](auto pack) { return each_strand<NormalizeChannels<pack(), T>>(pass, rows, channels, pack(), stream); },
      pass.x, pass.residual, pass.y);
}

template <typename T>
cudaError_t batch_norm_backward(const BatchNormGradientPointers<T>& pass, std::int64_t rows, std::int64_t channels,
                                cudaStream_t stream) {
  return with_pack_width<T>(
      channels,
      [=](auto pack) {
        return with_counts(pass.of.counts, [=](auto counts) {
          return each_strand<ChannelGradient<pack(), counts(), T>>(pass, rows, channels, pack(), stream);
        });
      },
      pass.of.x, pass.of.y, pass.of.dy, pass.dx);
}

TRIREME_INSTANTIATE(FLOATS, sum_channel_parts)
TRIREME_INSTANTIATE(FLOATS, sum_channel_gradient_parts)
TRIREME_INSTANTIATE(FLOATS, batch_norm)
TRIREME_INSTANTIATE(FLOATS, batch_norm_backward)
TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, batch_statistics)
TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, running_statistics)
TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, batch_norm_weight_gradient)

}  // namespace cuda
}  // namespace trireme::ops
