#include "ops/base/rows.cuh"
#include "ops/norm/group_norm_cuda.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops::cuda {
namespace {

// Each group of a sample is a row, which a team reads.
template <typename Body>
cudaError_t each_group(const Body& body, cudaStream_t stream) {
  const GroupNormSizes& sizes = body.in.sizes;
  return each_row(sizes.batch * sizes.groups, sizes.rows * sizes.channels / sizes.groups, stream, body);
}

}  // namespace

template <typename T>
cudaError_t group_norm(const NormalizeGroup<T>& body, cudaStream_t stream) {
  return each_group(body, stream);
}

template <typename T>
cudaError_t group_norm_backward(const GroupNormGradient<T>& body, cudaStream_t stream) {
  return each_group(body, stream);
}

template <typename T>
cudaError_t group_norm_weight_gradient(const GroupNormWeightGradient<T>& body, cudaStream_t stream) {
  return device::for_each_index(body.parts * body.in.sizes.channels, stream, body);
}

TRIREME_INSTANTIATE(FLOATS, group_norm)
TRIREME_INSTANTIATE(FLOATS, group_norm_backward)
TRIREME_INSTANTIATE(FLOATS, group_norm_weight_gradient)

}  // namespace trireme::ops::cuda
