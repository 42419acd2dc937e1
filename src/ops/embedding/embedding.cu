#include <utility>

#include "ops/base/rows.cuh"
#include "ops/embedding/embedding_body.hpp"
#include "ops/embedding/embedding_cuda.hpp"
#include "ops/embedding/sorted_index_body.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops::cuda {
namespace {

std::int64_t num_tiles(std::int64_t count) { return (count + sort_tile - 1) / sort_tile; }

}  // namespace

std::int64_t num_sort_counts(std::int64_t count) { return (num_tiles(count) + 1) * num_digits; }

cudaError_t sort_index(const std::int32_t* index, std::int64_t count, const IndexedRows& of, const SortMemory& memory,
                       SortedIndex& sorted, cudaStream_t stream) {
  const std::int64_t tiles = num_tiles(count);
  sorted = memory.first;
  SortedIndex other = memory.second;
  cudaError_t status =
      device::for_each_index(count, stream, KeysOfIndex{index, of.first, of.rows, of.padding, sorted.keys, sorted.places});
  for (int shift = 0; status == cudaSuccess && (of.rows >> shift) > 0; shift += digit_bits) {
    const SortPass pass{.keys = sorted.keys,
                        .places = sorted.places,
                        .count = count,
                        .shift = shift,
                        .tile_digits = memory.tile_digits,
                        .moved_keys = other.keys,
                        .moved_places = other.places};
    status = each_row_by_block(tiles, stream, CountDigits{pass});
    if (status == cudaSuccess) status = by_one_block(stream, PlaceDigits{pass, memory.tile_digits + tiles * num_digits});
    if (status == cudaSuccess) status = each_row_by_block(tiles, stream, MoveByDigit{pass});
    std::swap(sorted, other);
  }
  return status;
}

template <typename T>
cudaError_t gather_rows(const std::int32_t* index, std::int64_t places, const T* weight, std::int64_t rows, std::int64_t width,
                        T* y, bool accumulate, cudaStream_t stream) {
  return with_pack_width<T>(
      width,
      [=](auto pack) {
        return device::for_each_index(places * width / pack(), stream,
                                      GatherRows<pack(), T>{index, weight, rows, width, y, accumulate});
      },
      weight, y);
}

std::int64_t num_gradient_chunks(std::int64_t count) { return (count + gradient_chunk - 1) / gradient_chunk; }

template <typename T>
cudaError_t scatter_rows(const SortedIndex& index, std::int64_t count, const T* dy, std::int64_t rows, std::int64_t width,
                         T* dweight, T* continued, cudaStream_t stream) {
  return with_pack_width<T>(
      width,
      [=](auto pack) {
        const ScatterRows<pack(), T> body{index.keys, index.places, count, dy, rows, width, dweight, continued};
        const std::int64_t threads = num_gradient_chunks(count) * width / pack();
        const cudaError_t status = device::for_each_index(threads, stream, body);
        if (status != cudaSuccess) return status;
        return device::for_each_index(threads, stream, ScatterContinuedRows<pack(), T>{body});
      },
      dy, dweight, continued);
}

TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, gather_rows)
TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, scatter_rows)

}  // namespace trireme::ops::cuda
