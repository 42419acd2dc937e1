#include "ops/norm/group_norm_cuda.hpp"

#include "device/cuda/check.hpp"
#include "device/cuda/stream.hpp"
#include "ops/norm/group_norm_on.hpp"
#include "ops/reduce/reduce_cuda.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {

using device::check_cuda;
using device::native_stream;

template <>
template <typename T>
void GroupNorm<Cuda>::forward(const GroupNormSizes& sizes, const GroupNormForward<T, Cuda>& pass) {
  const NormalizeGroup<T> body{
      .in = {.sizes = sizes, .x = pass.x.data(), .weight = pass.weight.data(), .bias = pass.bias.data()},
      .epsilon = pass.epsilon,
      .y = pass.y.data(),
      .means = pass.mean.data(),
      .rstds = pass.rstd.data()};
  check_cuda(cuda::group_norm(body, native_stream()), "group_norm");
}

template <>
template <typename T>
void GroupNorm<Cuda>::backward(const GroupNormSizes& sizes, const GroupNormBackward<T, Cuda>& pass) {
  using A = Accumulate<T>;
  const GroupNormInput<T> in{.sizes = sizes, .x = pass.x.data(), .weight = pass.weight.data(), .bias = nullptr};
  const GroupNormGradient<T> body{.in = in,
                                  .means = pass.mean.data(),
                                  .rstds = pass.rstd.data(),
                                  .dy = pass.dy.data(),
                                  .dx = pass.dx.data(),
                                  .accumulate_dx = pass.accumulate_dx};
  if (pass.dweight.defined() || pass.dbias.defined()) {
    const std::int64_t parts = cuda::num_row_parts(sizes.batch * sizes.rows);
    const Tensor<A, Cuda> dweights({parts, sizes.channels});
    const Tensor<A, Cuda> dbiases({parts, sizes.channels});
    const GroupNormWeightGradient<T> of_parts{.in = in,
                                              .means = body.means,
                                              .rstds = body.rstds,
                                              .dy = body.dy,
                                              .parts = parts,
                                              .dweights = dweights.data(),
                                              .dbiases = dbiases.data()};
    check_cuda(cuda::group_norm_weight_gradient(of_parts, native_stream()), "group_norm_backward");
    const auto sum_parts = [&](const Tensor<A, Cuda>& sums, const Tensor<A, Cuda>& gradient, bool accumulate) {
      if (!gradient.defined()) return;
      check_cuda(cuda::sum_few_rows(sums.data(), parts, sizes.channels, gradient.data(), accumulate, native_stream()),
                 "group_norm_backward");
    };
    sum_parts(dweights, pass.dweight, pass.accumulate_dweight);
    sum_parts(dbiases, pass.dbias, pass.accumulate_dbias);
  }
  check_cuda(cuda::group_norm_backward(body, native_stream()), "group_norm_backward");
}

TRIREME_INSTANTIATE(FLOATS, group_norm, Cuda)
TRIREME_INSTANTIATE(FLOATS, group_norm_backward, Cuda)

}  // namespace trireme::ops
