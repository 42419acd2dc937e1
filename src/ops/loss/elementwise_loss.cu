#include "ops/base/map.cuh"
#include "ops/base/rows.cuh"
#include "ops/loss/elementwise_loss_body.hpp"
#include "ops/loss/elementwise_loss_cuda.hpp"
#include "ops/reduce/reduce_body.hpp"
#include "ops/reduce/reduce_cuda.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops::cuda {

template <typename T>
cudaError_t elementwise_loss(const ElementwiseLossOf<Accumulate<T>>& of, std::int64_t count, const T* x,
                             const Accumulate<T>* target, double* sums, double* total, cudaStream_t stream) {
  const std::int64_t parts = num_sum_parts(count);
  const cudaError_t status = with_loss(of, [=](auto loss) {
    return each_row_by_block(parts, stream, SumLosses<T, decltype(loss)>{loss, x, target, count, parts, sums});
  });
  return status == cudaSuccess ? by_one_block(stream, Total{sums, parts, total}) : status;
}

template <typename T>
cudaError_t elementwise_loss_backward(const ElementwiseLossOf<Accumulate<T>>& of, std::int64_t count, const T* x,
                                      const Accumulate<T>* target, const ScalarArgument<Accumulate<T>>& scale, T* dx,
                                      bool accumulate, cudaStream_t stream) {
  return with_loss(of, [=](auto loss) {
    return map_elements(count, dx, accumulate, stream, LossGradient<Accumulate<T>, decltype(loss)>{loss, scale}, x, target);
  });
}

TRIREME_INSTANTIATE(FLOATS, elementwise_loss)
TRIREME_INSTANTIATE(FLOATS, elementwise_loss_backward)

}  // namespace trireme::ops::cuda
