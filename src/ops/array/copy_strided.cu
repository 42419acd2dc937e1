#include "ops/array/copy_strided_body.hpp"
#include "ops/array/copy_strided_cuda.hpp"
#include "ops/base/rows.cuh"
#include "precision/instantiate.hpp"

namespace trireme::ops::cuda {
namespace {

template <typename Word>
__global__ void __launch_bounds__(device::threads_per_block) move_squares(MoveSquares<Word> body) {
  __shared__ typename MoveSquares<Word>::Memory memory;
  const std::int64_t tiles = body.tiles();
  for (std::int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) body(device::BlockTeam{}, tile, memory);
}

template <typename Word>
cudaError_t move_words(const ArrangedCopy& copy, const void* x, void* y, cudaStream_t stream) {
  const int reading = reading_dim(copy);
  if (reading < 0) {
    return device::for_each_index(copy.kept_count, stream,
                                  MoveWords<Word>{copy, static_cast<const Word*>(x), static_cast<Word*>(y)});
  }
  const auto squares = squares_of<Word>(copy, reading, x, y);
  const auto tiles = [](std::int64_t extent) { return (extent + strided_tile - 1) / strided_tile; };
  const std::int64_t count = squares.outer_count * tiles(squares.rows.extent) * tiles(squares.columns.extent);
  move_squares<<<device::blocks_for(count, 1), device::threads_per_block, 0, stream>>>(squares);
  return device::launched();
}

// A thread for each sum, if the sums are short or many.
template <typename T>
struct SumByThread {
  SumStrided<T> body;
  __device__ void operator()(std::int64_t i) const { body(device::LoneThread{}, i); }
};

}  // namespace

cudaError_t move_strided(const ArrangedCopy& copy, int word_bytes, const void* x, void* y, cudaStream_t stream) {
  switch (word_bytes) {
    case 1: return move_words<std::uint8_t>(copy, x, y, stream);
    case 2: return move_words<std::uint16_t>(copy, x, y, stream);
    case 4: return move_words<std::uint32_t>(copy, x, y, stream);
    case 8: return move_words<std::uint64_t>(copy, x, y, stream);
    default: return move_words<Pack<std::uint64_t, 2>>(copy, x, y, stream);
  }
}

template <typename T>
cudaError_t add_strided(const ArrangedCopy& copy, const T* x, T* y, cudaStream_t stream) {
  return device::for_each_index(copy.kept_count, stream, AddStrided<T>{copy, x, y});
}

template <typename T>
cudaError_t sum_strided(const ArrangedCopy& copy, const T* x, T* y, bool accumulate, cudaStream_t stream) {
  const SumStrided<T> body{copy, x, y, accumulate};
  constexpr std::int64_t many = 1 << 16;
  if (copy.summed_count <= 64 || copy.kept_count >= many) {
    return device::for_each_index(copy.kept_count, stream, SumByThread<T>{body});
  }
  return each_row(copy.kept_count, copy.summed_count, stream, body);
}

cudaError_t take_triangle(const TriangleSizes& sizes, int element_bytes, std::int64_t count, const void* x, void* y,
                          cudaStream_t stream) {
  const auto launch = [&]<typename Word>(Word) {
    return device::for_each_index(count, stream, TakeTriangle<Word>{sizes, static_cast<const Word*>(x), static_cast<Word*>(y)});
  };
  switch (element_bytes) {
    case 1: return launch(std::uint8_t{});
    case 2: return launch(std::uint16_t{});
    case 4: return launch(std::uint32_t{});
    default: return launch(std::uint64_t{});
  }
}

template <typename T>
cudaError_t fill_line(const FillLine<T>& body, cudaStream_t stream) {
  return device::for_each_index(body.count, stream, body);
}

TRIREME_INSTANTIATE(NUMBERS, add_strided)
TRIREME_INSTANTIATE(NUMBERS, sum_strided)
TRIREME_INSTANTIATE(NUMBERS, fill_line)

}  // namespace trireme::ops::cuda
