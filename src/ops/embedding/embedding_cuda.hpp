#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

// Launches: T is float or double.
namespace trireme::ops::cuda {

// The places of an index, sorted by their rows.
struct SortedIndex {
  std::int32_t* keys;
  std::int32_t* places;
};

// Memory for the sort: two buffers of keys and places, used in turn, and counts.
struct SortMemory {
  SortedIndex first;
  SortedIndex second;
  std::int32_t* tile_digits;  // [num_sort_counts]
};
std::int64_t num_sort_counts(std::int64_t count);

// The valid range of an index: `rows` rows from `first` on, except the padding.
struct IndexedRows {
  std::int64_t rows;
  std::int32_t first;
  std::int32_t padding;
};

// The keys are rows in [0, rows), or `rows` for invalid indices. `sorted` becomes the buffer that holds the result.
cudaError_t sort_index(const std::int32_t* index, std::int64_t count, const IndexedRows& of, const SortMemory& memory,
                       SortedIndex& sorted, cudaStream_t stream);

template <typename T>
cudaError_t gather_rows(const std::int32_t* index, std::int64_t places, const T* weight, std::int64_t rows, std::int64_t width,
                        T* y, bool accumulate, cudaStream_t stream);

// Adds to dweight. continued[num_gradient_chunks, width] is scratch memory.
std::int64_t num_gradient_chunks(std::int64_t count);
template <typename T>
cudaError_t scatter_rows(const SortedIndex& index, std::int64_t count, const T* dy, std::int64_t rows, std::int64_t width,
                         T* dweight, T* continued, cudaStream_t stream);

}  // namespace trireme::ops::cuda
