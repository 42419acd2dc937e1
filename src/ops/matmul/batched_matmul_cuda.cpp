#include "ops/matmul/batched_matmul_on.hpp"
#include "ops/matmul/matmul_on.hpp"
#include "ops/matmul/matmul_plans_cuda.hpp"
#include "ops/matmul/strided_batches_cuda.hpp"
#include "precision/instantiate.hpp"
#include "trireme/device/cuda.hpp"

namespace trireme::ops {
namespace {

Shape matrix_shape(const Shape& shape) { return {shape[-2], shape[-1]}; }

}  // namespace

template <>
template <typename T, typename C>
void BatchedMatmul<Cuda>::run(const Tensor<T, Cuda>& a, const Tensor<T, Cuda>& b, Tensor<C, Cuda>& c, const Shape& batch,
                              const MatmulOptions& options) {
  if (c.numel() == 0) return;
  const auto shape = matmul_shape<T, C>(matrix_shape(a.shape()), matrix_shape(b.shape()), matrix_shape(c.shape()), options);
  const auto batches = cuda::strided_batches(a.shape(), b.shape(), c.shape(), batch);
  if (batches.empty() || shape.k == 0) {  // sums over no products
    const C zero{};
    if (!options.accumulate) device::fill(Cuda{}, c.data(), &zero, sizeof(C), static_cast<std::size_t>(c.numel()));
    return;
  }
  const std::int64_t of_a = shape.m * shape.k;  // elements
  const std::int64_t of_b = shape.k * shape.n;
  const std::int64_t of_c = shape.m * shape.n;
  for (const cuda::StridedBatch& products : batches) {
    cuda::MatmulProblem problem{.shape = shape,
                                .tf32 = std::is_same_v<T, float> && device::tf32_allowed(),
                                .batch = products.count,
                                .stride_a = products.stride.a * of_a,
                                .stride_b = products.stride.b * of_b,
                                .stride_c = products.stride.c * of_c};
    problem.shape.accumulate = options.accumulate || products.accumulate;
    cuda::run_matmul(problem, {.a = a.data() + products.first.a * of_a,
                               .b = b.data() + products.first.b * of_b,
                               .c = c.data() + products.first.c * of_c});
  }
}

TRIREME_INSTANTIATE(FLOATS, batched_matmul, Cuda)
TRIREME_EACH(FLOATS, TRIREME_BATCHED_MATMUL_BACKWARD, Cuda)
TRIREME_INSTANTIATE(HALVES, batched_matmul_backward, Cuda, float)

}  // namespace trireme::ops
