#include "ops/base/rows.cuh"
#include "ops/elementwise/transpose_body.hpp"
#include "ops/elementwise/transpose_cuda.hpp"

namespace trireme::ops::cuda {
namespace {

template <typename Word>
__global__ void __launch_bounds__(device::threads_per_block) move_tiles(std::int64_t tiles, MoveTile<Word> body) {
  __shared__ typename MoveTile<Word>::Memory memory;
  for (std::int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) body(device::BlockTeam{}, tile, memory);
}

std::int64_t num_tiles(std::int64_t count) { return (count + transpose_tile - 1) / transpose_tile; }

template <typename Word>
cudaError_t transpose_words(const TransposeSizes& sizes, const void* from, void* to, cudaStream_t stream) {
  const auto* x = static_cast<const Word*>(from);
  auto* y = static_cast<Word*>(to);
  if (sizes.inner == 1) {
    const std::int64_t tiles = sizes.outer * sizes.middle * num_tiles(sizes.rows) * num_tiles(sizes.columns);
    move_tiles<<<device::blocks_for(tiles, 1), device::threads_per_block, 0, stream>>>(tiles, MoveTile<Word>{sizes, x, y});
    return device::launched();
  }
  const std::int64_t count = sizes.outer * sizes.rows * sizes.middle * sizes.columns * sizes.inner;
  return with_pack_width<Word>(
      sizes.inner,
      [=](auto pack) {
        return device::for_each_index(count / pack(), stream, MoveRuns<pack(), Word>{sizes, x, y});
      },
      x, y);
}

}  // namespace

cudaError_t transpose(const TransposeSizes& sizes, int element_bytes, const void* x, void* y, cudaStream_t stream) {
  switch (element_bytes) {
    case 1: return transpose_words<std::uint8_t>(sizes, x, y, stream);
    case 2: return transpose_words<std::uint16_t>(sizes, x, y, stream);
    case 4: return transpose_words<std::uint32_t>(sizes, x, y, stream);
    default: return transpose_words<std::uint64_t>(sizes, x, y, stream);
  }
}

}  // namespace trireme::ops::cuda
