#include "ops/norm/batch_norm_cuda.hpp"

#include "device/cuda/check.hpp"
#include "device/cuda/stream.hpp"
#include "ops/norm/batch_norm_on.hpp"
#include "ops/reduce/reduce_cuda.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {

using device::check_cuda;
using device::native_stream;

namespace {

// Adds the sums of parts that make(parts, sums of parts) launches: sums [2 * channels].
template <typename Make>
void sum_in_parts(const Shape& x, Tensor<double, Cuda>& sums, const Make& make) {
  const std::int64_t parts = cuda::num_channel_parts(x.rows(), x.back());
  if (parts == 1) return make(parts, sums.data());
  const Tensor<double, Cuda> of_parts({parts, sums.numel()});
  make(parts, of_parts.data());
  check_cuda(cuda::sum_few_rows(of_parts.data(), parts, sums.numel(), sums.data(), false, native_stream()), "batch_norm_sums");
}

template <typename T, typename Pass>
ChannelNormalization<T> normalization(const Pass& pass) {
  return {.mean = pass.mean.data(), .rstd = pass.rstd.data(), .weight = pass.weight.data(), .bias = pass.bias.data()};
}

template <typename T>
BatchNormGradients<T> gradients_of(const BatchNormBackward<T, Cuda>& pass) {
  const Counts counts = !pass.relu ? Counts::everywhere : pass.y.defined() ? Counts::where_y : Counts::where_x;
  return {.norm = normalization<T>(pass), .x = pass.x.data(), .counts = counts, .y = pass.y.data(), .dy = pass.dy.data()};
}

}  // namespace

template <>
template <typename T>
void BatchNorm<Cuda>::sums(const Tensor<T, Cuda>& x, Tensor<double, Cuda>& sums) {
  const Shape& shape = x.shape();
  sum_in_parts(shape, sums, [&](std::int64_t parts, double* of_parts) {
    check_cuda(cuda::sum_channel_parts(x.data(), shape.rows(), shape.back(), parts, of_parts, native_stream()),
               "batch_norm_sums");
  });
}

template <>
template <typename A>
void BatchNorm<Cuda>::statistics(const BatchNormStatistics<A, Cuda>& pass) {
  check_cuda(cuda::batch_statistics(batch_statistics(pass), native_stream()), "batch_norm_statistics");
}

template <>
template <typename A>
void BatchNorm<Cuda>::running_statistics(const Tensor<A, Cuda>& running_mean, const Tensor<A, Cuda>& running_var,
                                         double epsilon, Tensor<double, Cuda>& mean, Tensor<double, Cuda>& rstd) {
  const RunningStatisticsOfChannel<A> body{running_mean.data(), running_var.data(), epsilon, mean.data(), rstd.data()};
  check_cuda(cuda::running_statistics(body, mean.numel(), native_stream()), "batch_norm_running_statistics");
}

template <>
template <typename T>
void BatchNorm<Cuda>::forward(const BatchNormForward<T, Cuda>& pass) {
  const BatchNormPointers<T> pointers{.norm = normalization<T>(pass),
                                      .x = pass.x.data(),
                                      .residual = pass.residual.data(),
                                      .relu = pass.relu,
                                      .y = pass.y.data()};
  check_cuda(cuda::batch_norm(pointers, pass.x.shape().rows(), pass.x.shape().back(), native_stream()), "batch_norm");
}

template <>
template <typename T>
void BatchNorm<Cuda>::backward_sums(const BatchNormBackward<T, Cuda>& pass, Tensor<double, Cuda>& sums,
                                    const Tensor<T, Cuda>& dresidual) {
  const Shape& shape = pass.x.shape();
  const BatchNormSumPointers<T> pointers{gradients_of(pass), dresidual.data()};
  sum_in_parts(shape, sums, [&](std::int64_t parts, double* of_parts) {
    check_cuda(cuda::sum_channel_gradient_parts(pointers, shape.rows(), shape.back(), parts, of_parts, native_stream()),
               "batch_norm_backward_sums");
  });
}

template <>
template <typename A>
void BatchNorm<Cuda>::weight_gradient(const Tensor<double, Cuda>& sums, Tensor<A, Cuda>& gradient, bool accumulate) {
  check_cuda(cuda::batch_norm_weight_gradient(sums.data(), sums.numel(), gradient.data(), accumulate, native_stream()),
             "batch_norm_weight_gradient");
}

template <>
template <typename T>
void BatchNorm<Cuda>::backward(const BatchNormBackward<T, Cuda>& pass, const BatchNormInputGradient<T, Cuda>& gradient) {
  const BatchNormGradientPointers<T> pointers{.of = gradients_of(pass),
                                              .sums = gradient.sums.data(),
                                              .rows = gradient.rows,
                                              .dx = gradient.dx.data(),
                                              .accumulate_dx = gradient.accumulate_dx};
  check_cuda(cuda::batch_norm_backward(pointers, pass.x.shape().rows(), pass.x.shape().back(), native_stream()),
             "batch_norm_backward");
}

TRIREME_INSTANTIATE(FLOATS, batch_norm_sums, Cuda)
TRIREME_INSTANTIATE(FLOATS, batch_norm, Cuda)
TRIREME_INSTANTIATE(FLOATS, batch_norm_backward_sums, Cuda)
TRIREME_INSTANTIATE(FLOATS, batch_norm_backward, Cuda)
TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, batch_norm_statistics, Cuda)
TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, batch_norm_running_statistics, Cuda)
TRIREME_INSTANTIATE(SINGLE_AND_DOUBLE, batch_norm_weight_gradient, Cuda)

}  // namespace trireme::ops
