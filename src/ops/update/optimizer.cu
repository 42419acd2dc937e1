#include "ops/base/rows.cuh"
#include "ops/reduce/reduce_body.hpp"
#include "ops/reduce/reduce_cuda.hpp"
#include "ops/update/lamb_body.hpp"
#include "ops/update/optimizer_cuda.hpp"
#include "ops/update/update.cuh"
#include "precision/instantiate.hpp"

namespace trireme::ops::cuda {
template <typename Update>
cudaError_t update_elements(const typename Update::Step& step, std::size_t count, const typename Update::Planes& planes,
                            cudaStream_t stream) {
  return planes.visit([&](auto... kept) { return update_planes(count, stream, MadeOf<Update>{step}, kept...); });
}

template <typename T>
cudaError_t lamb_moments(const T* weight, const T* gradient, T* first_moment, T* second_moment, std::size_t count,
                         const LambStep& step, double* sums, UpdateSquares* squares, cudaStream_t stream) {
  const auto elements = static_cast<std::int64_t>(count);
  const std::int64_t parts = num_sum_parts(elements);
  const LambMoments<T> body{weight, gradient, first_moment, second_moment, elements, parts, sums, sums + parts};
  cudaError_t status = update_rows(parts, stream, MadeOf<LambUpdate<T>>{step}, body);
  if (status == cudaSuccess) status = by_one_block(stream, Total{sums, parts, &squares->weight, true});
  if (status == cudaSuccess) status = by_one_block(stream, Total{sums + parts, parts, &squares->update, true});
  return status;
}

#define TRIREME_UPDATE(name, Name, T) TRIREME_INSTANCE(Name##Update<T>, update_elements)
#define TRIREME_EACH_UPDATE(T) TRIREME_EACH_FORMULA(TRIREME_UPDATE, T)
TRIREME_EACH(SINGLE_AND_DOUBLE, TRIREME_EACH_UPDATE)
TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, lamb_moments)

}  // namespace trireme::ops::cuda
