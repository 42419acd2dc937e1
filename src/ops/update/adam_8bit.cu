#include "ops/update/adam_8bit_body.hpp"
#include "ops/update/adam_8bit_cuda.hpp"
#include "ops/update/update.cuh"
#include "precision/instantiate.hpp"

namespace trireme::ops::cuda {

template <typename T>
cudaError_t adam_8bit(const AdamStep& step, std::int64_t count, const Adam8bitPlanes<T>& planes, const float* measured,
                      std::int64_t parts, cudaStream_t stream) {
  const std::int64_t blocks = (count + block_of_8bit - 1) / block_of_8bit;
  return update_rows_by_warp(blocks, stream, MadeOf<AdamUpdate<T>>{step}, UpdateBlock8bit<T>{planes, count, measured, parts});
}

template <typename T>
cudaError_t measure_adam_8bit(const AdamStep& step, std::int64_t count, const Adam8bitPlanes<T>& planes, float* absmax,
                              cudaStream_t stream) {
  return update_rows(1, stream, MadeOf<AdamUpdate<T>>{step}, MeasureBlock8bit<T>{planes, count, absmax});
}

TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, adam_8bit)
TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, measure_adam_8bit)

}  // namespace trireme::ops::cuda
