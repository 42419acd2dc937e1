#include "ops/norm/norm_cuda.hpp"

#include "device/cuda/check.hpp"
#include "device/cuda/stream.hpp"
#include "ops/norm/norm_on.hpp"
#include "ops/reduce/reduce_cuda.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {

using device::check_cuda;
using device::native_stream;

template <>
template <typename T>
void Norms<Cuda>::forward(NormKind kind, const NormForward<T, Cuda>& pass) {
  const NormForwardPointers<T> pointers{.x = pass.x.data(),
                                        .residual = pass.residual.data(),
                                        .weight = pass.weight.data(),
                                        .bias = pass.bias.data(),
                                        .epsilon = static_cast<Accumulate<T>>(pass.epsilon),
                                        .x_sum = pass.x_sum.data(),
                                        .y = pass.y.data(),
                                        .mean = pass.mean.data(),
                                        .rstd = pass.rstd.data(),
                                        .width = pass.x.shape().back()};
  check_cuda(cuda::norm_forward(pointers, kind == NormKind::layer, pass.x.shape().rows(), native_stream()), "norm");
}

template <>
template <typename T>
void Norms<Cuda>::backward(NormKind kind, const NormBackward<T, Cuda>& pass) {
  using A = Accumulate<T>;
  const std::int64_t rows = pass.x.shape().rows();
  const std::int64_t width = pass.x.shape().back();
  const NormBackwardPointers<T> pointers{.x = pass.x.data(),
                                         .weight = pass.weight.data(),
                                         .mean = pass.mean.data(),
                                         .rstd = pass.rstd.data(),
                                         .dy = pass.dy.data(),
                                         .dx = pass.dx.data(),
                                         .accumulate_dx = pass.accumulate_dx,
                                         .dresidual = pass.dresidual.data(),
                                         .width = width};
  const std::int64_t parts = cuda::num_norm_parts<T>(rows, width);
  const auto of_parts = [&](const Tensor<A, Cuda>& gradient) {
    return gradient.defined() ? Tensor<A, Cuda>({parts, width}) : Tensor<A, Cuda>();
  };
  const Tensor<A, Cuda> dweights = of_parts(pass.dweight);
  const Tensor<A, Cuda> dbiases = of_parts(pass.dbias);
  check_cuda(
      cuda::norm_backward(pointers, kind == NormKind::layer, rows, parts, dweights.data(), dbiases.data(), native_stream()),
      "norm_backward");
  const auto sum_parts = [&](const Tensor<A, Cuda>& sums, const Tensor<A, Cuda>& gradient, bool accumulate) {
    if (!gradient.defined()) return;
    check_cuda(cuda::sum_few_rows(sums.data(), parts, width, gradient.data(), accumulate, native_stream()), "norm_backward");
  };
  sum_parts(dweights, pass.dweight, pass.accumulate_dweight);
  sum_parts(dbiases, pass.dbias, pass.accumulate_dbias);
}

TRIREME_INSTANTIATE(FLOATS, layer_norm, Cuda)
TRIREME_INSTANTIATE(FLOATS, rms_norm, Cuda)
TRIREME_INSTANTIATE(FLOATS, layer_norm_backward, Cuda)
TRIREME_INSTANTIATE(FLOATS, rms_norm_backward, Cuda)

}  // namespace trireme::ops
