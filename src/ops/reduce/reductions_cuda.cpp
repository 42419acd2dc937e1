#include "ops/reduce/reductions_cuda.hpp"

#include "device/cuda/check.hpp"
#include "device/cuda/stream.hpp"
#include "ops/reduce/reductions_on.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {

using device::check_cuda;
using device::native_stream;

template <>
template <typename T>
void Reductions<Cuda>::accumulate(Accumulation kind, const ReduceSizes& sizes, const T* x, const Wide<T>* shift,
                                  Wide<T>* values) {
  if (sizes.results() == 0) return;
  const std::int64_t parts = cuda::num_reduce_parts(sizes);
  if (parts == 1) {
    check_cuda(cuda::reduce_parts(ReduceParts<T>{kind, sizes, 1, x, shift, values}, native_stream()), "reduce");
    return;
  }
  const Tensor<Wide<T>, Cuda> sums({sizes.results() * parts});
  check_cuda(cuda::reduce_parts(ReduceParts<T>{kind, sizes, parts, x, shift, sums.data()}, native_stream()), "reduce");
  const ReduceSizes of_parts{sizes.outer, parts, sizes.inner};
  accumulate(accumulation_of_parts(kind), of_parts, sums.data(), static_cast<const Wide<T>*>(nullptr), values);
}

template <>
template <typename Y, typename V>
void Reductions<Cuda>::finish(std::int64_t count, const FinishReduction<Y, V>& body) {
  check_cuda(cuda::finish(count, body, native_stream()), "reduce");
}

template <>
template <typename T>
void Reductions<Cuda>::scale(std::int64_t count, const GradientScale<T>& body) {
  check_cuda(cuda::gradient_scale(count, body, native_stream()), "reduce_backward");
}

template <>
template <typename T>
void Reductions<Cuda>::gradient(const ReductionGradient<T>& body) {
  check_cuda(cuda::reduction_gradient(body, native_stream()), "reduce_backward");
}

template <>
template <typename T>
void Reductions<Cuda>::product_gradient(const ReduceSizes& sizes, const T* x, const double* dy, T* dx, bool accumulate) {
  const std::int64_t chunks = cuda::num_chunks(sizes);
  const Tensor<double, Cuda> products({sizes.results() * chunks});
  const Tensor<double, Cuda> before({sizes.results() * sizes.reduced});
  if (chunks > 1) {
    check_cuda(cuda::chunk_products(ChunkProduct<T>{sizes, chunks, x, products.data()}, native_stream()), "reduce_backward");
  }
  check_cuda(cuda::product_gradient(ProductGradient<T>{sizes, chunks, x, products.data(), dy, before.data(), dx, accumulate},
                                    native_stream()),
             "reduce_backward");
}

}  // namespace trireme::ops

namespace trireme {

TRIREME_INSTANTIATE(ELEMENTS, sum, Cuda)
TRIREME_INSTANTIATE(NUMBERS, max, Cuda)
TRIREME_INSTANTIATE(NUMBERS, min, Cuda)
TRIREME_INSTANTIATE(NUMBERS, ops::reduce, Cuda)
TRIREME_INSTANTIATE(FLOATS, mean, Cuda)
TRIREME_INSTANTIATE(FLOATS, prod, Cuda)
TRIREME_INSTANTIATE(FLOATS, logsumexp, Cuda)
TRIREME_INSTANTIATE(FLOATS, var, Cuda)
TRIREME_INSTANTIATE(FLOATS, stddev, Cuda)
TRIREME_INSTANTIATE(FLOATS, norm, Cuda)
TRIREME_INSTANTIATE(FLOATS, ops::logsumexp, Cuda)
TRIREME_INSTANTIATE(FLOATS, ops::logsumexp_backward, Cuda)
TRIREME_INSTANTIATE(FLOATS, ops::reduce_backward, Cuda)
TRIREME_INSTANCE(Cuda, any)
TRIREME_INSTANCE(Cuda, all)

}  // namespace trireme
