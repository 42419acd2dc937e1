#include "ops/reduce/reduce_cuda.hpp"

#include "device/cuda/check.hpp"
#include "device/cuda/stream.hpp"
#include "ops/reduce/reduce_on.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {

using device::check_cuda;
using device::native_stream;

template <>
template <typename T>
void Reduce<Cuda>::sum_rows(const T* x, std::int64_t rows, std::int64_t width, Accumulate<T>* columns, bool accumulate) {
  const std::int64_t parts = cuda::num_row_parts(rows);
  if (parts == 1) {
    check_cuda(cuda::sum_few_rows(x, rows, width, columns, accumulate, native_stream()), "sum_rows");
    return;
  }
  const Tensor<Accumulate<T>, Cuda> sums({parts, width});
  check_cuda(cuda::sum_row_parts(x, rows, width, parts, sums.data(), native_stream()), "sum_rows");
  check_cuda(cuda::sum_few_rows(sums.data(), parts, width, columns, accumulate, native_stream()), "sum_rows");
}

template <>
template <typename T>
Scalar<double, Cuda> Reduce<Cuda>::sum_of_squares(const T* x, std::int64_t count) {
  const Tensor<double, Cuda> sums({cuda::num_sum_parts(count)});
  const Tensor<double, Cuda> total({1});
  check_cuda(cuda::sum_of_squares(x, count, sums.data(), total.data(), false, native_stream()), "sum_of_squares");
  return Scalar<double, Cuda>(total);
}

TRIREME_INSTANTIATE(FLOATS, sum_rows, Cuda)
TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, sum_of_squares, Cuda)

}  // namespace trireme::ops
