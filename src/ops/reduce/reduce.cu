#include "ops/base/rows.cuh"
#include "ops/reduce/reduce_body.hpp"
#include "ops/reduce/reduce_cuda.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops::cuda {
namespace {

template <typename T, typename Value>
cudaError_t sum_values(const T* x, std::int64_t count, double* sums, double* total, bool accumulate, cudaStream_t stream) {
  const std::int64_t parts = num_sum_parts(count);
  const cudaError_t status = with_pack_width<T>(
      0,
      [=](auto pack) {
        return each_row_by_block(parts, stream, SumParts<pack(), T, Value>{x, count, parts, sums});
      },
      x);
  if (status != cudaSuccess) return status;
  return by_one_block(stream, Total{sums, parts, total, accumulate});
}

}  // namespace

std::int64_t num_row_parts(std::int64_t rows) {
  constexpr std::int64_t rows_of_part = 16;
  constexpr std::int64_t most = 1024;
  const std::int64_t parts = rows / rows_of_part;
  return parts < 1 ? 1 : parts < most ? parts : most;
}

std::int64_t num_sum_parts(std::int64_t count) { return device::blocks_for(count, 16 * device::threads_per_block); }

template <typename T>
cudaError_t sum_row_parts(const T* x, std::int64_t rows, std::int64_t width, std::int64_t parts, Accumulate<T>* sums,
                          cudaStream_t stream) {
  return with_pack_width<T>(
      width,
      [=](auto pack) {
        return device::for_each_index(parts * width / pack(), stream, SumRowParts<pack(), T>{{x, width}, rows, parts, sums});
      },
      x, sums);
}

template <typename T>
cudaError_t sum_few_rows(const T* x, std::int64_t rows, std::int64_t width, Accumulate<T>* columns, bool accumulate,
                         cudaStream_t stream) {
  return with_pack_width<T>(
      width,
      [=](auto pack) {
        return each_row_by_block(width / pack(), stream, SumRows<pack(), T>{{x, width}, rows, columns, accumulate});
      },
      x, columns);
}

template <typename T>
cudaError_t sum(const T* x, std::int64_t count, double* sums, double* total, cudaStream_t stream) {
  return sum_values<T, Itself>(x, count, sums, total, false, stream);
}

template <typename T>
cudaError_t sum_of_squares(const T* x, std::int64_t count, double* sums, double* total, bool accumulate, cudaStream_t stream) {
  return sum_values<T, Square>(x, count, sums, total, accumulate, stream);
}

TRIREME_INSTANTIATE(FLOATS, sum_row_parts)
TRIREME_INSTANTIATE(FLOATS, sum_few_rows)
TRIREME_INSTANTIATE(FLOATS, sum)
TRIREME_INSTANTIATE(FLOATS, sum_of_squares)

}  // namespace trireme::ops::cuda
