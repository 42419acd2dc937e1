#include "ops/update/optimizer_cuda.hpp"

#include "device/cuda/check.hpp"
#include "device/cuda/stream.hpp"
#include "ops/reduce/reduce_cuda.hpp"
#include "ops/update/optimizer_on.hpp"
#include "precision/instantiate.hpp"
#include "trireme/tensor/tensor.hpp"

namespace trireme::ops {

using device::check_cuda;
using device::native_stream;

template <>
template <typename Update>
void OptimizerPasses<Cuda>::update_elements(const typename Update::Step& step, std::size_t count,
                                            const typename Update::Planes& planes) {
  check_cuda(cuda::update_elements<Update>(step, count, planes, native_stream()), name_of<Update>);
}

template <>
template <typename T>
void OptimizerPasses<Cuda>::lamb_moments(const T* weight, const T* gradient, T* first_moment, T* second_moment,
                                         std::size_t count, const LambStep& step, UpdateSquares* squares) {
  const Tensor<double, Cuda> sums({2, cuda::num_sum_parts(static_cast<std::int64_t>(count))});
  check_cuda(
      cuda::lamb_moments(weight, gradient, first_moment, second_moment, count, step, sums.data(), squares, native_stream()),
      "lamb_moments");
}

template <>
template <typename T>
void OptimizerPasses<Cuda>::lars_squares(const T* weight, const T* gradient, std::size_t count, UpdateSquares* squares) {
  const auto elements = static_cast<std::int64_t>(count);
  const Tensor<double, Cuda> sums({cuda::num_sum_parts(elements)});
  const auto add = [&](const T* x, double* total) {
    check_cuda(cuda::sum_of_squares(x, elements, sums.data(), total, true, native_stream()), "lars_squares");
  };
  add(weight, &squares->weight);
  add(gradient, &squares->update);
}

TRIREME_EACH(SINGLE_AND_DOUBLE, TRIREME_EACH_UPDATE, Cuda)
TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, lamb_moments, Cuda)
TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, lars_squares, Cuda)

}  // namespace trireme::ops
