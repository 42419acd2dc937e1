#include "ops/base/rows.cuh"
#include "ops/matmul/float8_cuda.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops::cuda {
namespace {

template <typename T, typename F>
__global__ void __launch_bounds__(device::threads_per_block) quantize_tiles(std::int64_t tiles, QuantizeTile<T, F> body) {
  __shared__ typename QuantizeTile<T, F>::Memory memory;
  for (std::int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) body(device::BlockTeam{}, tile, memory);
}

}  // namespace

std::int64_t num_amax_parts(std::int64_t count) { return device::blocks_for(count, 16 * device::threads_per_block); }

template <typename T>
cudaError_t amax_parts(const T* x, std::int64_t count, const Amaxes& known, float* amaxes, cudaStream_t stream) {
  const std::int64_t parts = num_amax_parts(count);
  return with_pack_width<T>(
      0,
      [=](auto pack) {
        return each_row_by_block(parts, stream, AmaxParts<pack(), T>{x, count, parts, amaxes, known});
      },
      x);
}

cudaError_t largest_amax(const LargestAmax& body, cudaStream_t stream) { return by_one_block(stream, body); }

template <typename F>
cudaError_t float8_scale(const ScaleOfAmaxes<F>& body, cudaStream_t stream) {
  return by_one_block(stream, body);
}

cudaError_t push_amax(const PushAmax& body, cudaStream_t stream) { return by_one_block(stream, body); }

template <typename T, typename F>
cudaError_t quantize(const QuantizeTile<T, F>& body, cudaStream_t stream) {
  const std::int64_t tiles = quantize_tiles_along(body.rows) * quantize_tiles_along(body.columns);
  if (tiles == 0) return cudaSuccess;
  quantize_tiles<<<device::blocks_for(tiles, 1), device::threads_per_block, 0, stream>>>(tiles, body);
  return device::launched();
}

template cudaError_t amax_parts(const float*, std::int64_t, const Amaxes&, float*, cudaStream_t);
template cudaError_t amax_parts(const bfloat16*, std::int64_t, const Amaxes&, float*, cudaStream_t);
TRIREME_INSTANTIATE(FLOAT8S, float8_scale)
template cudaError_t quantize(const QuantizeTile<float, float8_e4m3>&, cudaStream_t);
template cudaError_t quantize(const QuantizeTile<float, float8_e5m2>&, cudaStream_t);
template cudaError_t quantize(const QuantizeTile<bfloat16, float8_e4m3>&, cudaStream_t);
template cudaError_t quantize(const QuantizeTile<bfloat16, float8_e5m2>&, cudaStream_t);

}  // namespace trireme::ops::cuda
