#include "ops/convolution/convolution_cuda.hpp"

#include <array>

#include "device/cuda/check.hpp"
#include "device/cuda/stream.hpp"
#include "ops/base/cudnn_plan_table.hpp"
#include "ops/convolution/convolution_graph_cuda.hpp"
#include "ops/convolution/convolution_on.hpp"
#include "ops/matmul/add_bias_cuda.hpp"
#include "precision/instantiate.hpp"
#include "trireme/device/cuda.hpp"
#include "trireme/ops/array/transpose.hpp"
#include "trireme/ops/elementwise/cast.hpp"

namespace trireme::ops {

using device::check_cuda;
using device::native_stream;

namespace {

using Pass = ConvolutionGraph::Pass;

CudnnPlanTable<ConvolutionGraph>& convolution_plans() {
  thread_local CudnnPlanTable<ConvolutionGraph> plans("a convolution", plan_convolution);
  return plans;
}

// Returns null if there is no plan for these images.
template <typename T>
const CudnnPlan* plan_for(Pass pass, const ConvolutionShape& shape, const Tensor<T, Cuda>& x, const Tensor<T, Cuda>& y) {
  if (shape.batch == 0 || !is_aligned(x.data()) || !is_aligned(y.data())) return nullptr;
  ConvolutionGraph graph{.pass = pass, .shape = shape, .tf32 = device::tf32_allowed()};
  graph.shape.bias = false;
  graph.shape.operands = dtype_of<T>;
  return convolution_plans().find(graph);
}

template <typename T>
void execute(const CudnnPlan& plan, const Tensor<T, Cuda>& x, const Tensor<T, Cuda>& y, const Tensor<T, Cuda>& filter) {
  const std::array arguments{CudnnPlan::Argument{convolution_argument::x, x.data()},
                             CudnnPlan::Argument{convolution_argument::y, y.data()},
                             CudnnPlan::Argument{convolution_argument::filter, filter.data()}};
  const device::Storage workspace(device::cuda_memory(), plan.workspace_bytes());
  plan.execute(cudnn(), arguments, workspace.data());
}

// The shape of the filter [out, taps, in / groups] for a weight [out, in / groups, taps].
Shape filter_shape(const Shape& weight) { return {weight[0], weight[2] * weight[3], weight[1]}; }

template <typename T>
Tensor<T, Cuda> filter_of(const Tensor<T, Cuda>& weight) {
  const Shape shape = filter_shape(weight.shape());
  Tensor<T, Cuda> filter(shape);
  transpose(weight.reshape({shape[0], shape[2], shape[1]}), 1, 2, filter);
  return filter;
}

template <typename T>
void write_weight(const Tensor<T, Cuda>& filter, Tensor<Accumulate<T>, Cuda>& weight) {
  const Shape& shape = filter.shape();
  Tensor<Accumulate<T>, Cuda> rows = weight.reshape({shape[0], shape[2], shape[1]});
  if constexpr (std::is_same_v<T, Accumulate<T>>) {
    transpose(filter, 1, 2, rows);
  } else {
    Tensor<T, Cuda> halves(rows.shape());
    transpose(filter, 1, 2, halves);
    ops::cast(halves, rows);
  }
}

}  // namespace

template <>
template <typename T>
void Convolution<Cuda>::forward(const ConvolutionShape& shape, const Tensor<T, Cuda>& x, const Tensor<T, Cuda>& weight,
                                const Tensor<Accumulate<T>, Cuda>& bias, Tensor<T, Cuda>& y) {
  if (const CudnnPlan* const plan = plan_for(Pass::forward, shape, x, y)) {
    execute(*plan, x, y, filter_of(weight));
  } else {
    const ConvolutionForward<T> body{{shape}, x.data(), weight.data(), y.data()};
    check_cuda(cuda::convolution(body, native_stream()), "conv2d");
  }
  if (shape.bias) add_bias(y, bias);
}

template <>
template <typename T>
void Convolution<Cuda>::backward_data(const ConvolutionShape& shape, const Tensor<T, Cuda>& dy, const Tensor<T, Cuda>& weight,
                                      Tensor<T, Cuda>& dx) {
  if (const CudnnPlan* const plan = plan_for(Pass::data, shape, dx, dy)) {
    execute(*plan, dx, dy, filter_of(weight));
  } else {
    const ConvolutionDataGradient<T> body{{shape}, dy.data(), weight.data(), dx.data()};
    check_cuda(cuda::convolution_data(body, native_stream()), "conv2d_backward_data");
  }
}

// cuDNN's engines for half types write gradients of filters in that type.
template <>
template <typename T>
void Convolution<Cuda>::backward_weight(const ConvolutionShape& shape, const Tensor<T, Cuda>& x, const Tensor<T, Cuda>& dy,
                                        Tensor<Accumulate<T>, Cuda>& dweight) {
  if (const CudnnPlan* const plan = plan_for(Pass::filter, shape, x, dy)) {
    const Tensor<T, Cuda> filter(filter_shape(dweight.shape()));
    execute(*plan, x, dy, filter);
    write_weight(filter, dweight);
  } else {
    const ConvolutionWeightGradient<T> body{{shape}, x.data(), dy.data(), dweight.data()};
    check_cuda(cuda::convolution_weight(body, native_stream()), "conv2d_backward_weight");
  }
}

template <>
template <typename T>
void Convolution<Cuda>::add_bias(Tensor<T, Cuda>& images, const Tensor<Accumulate<T>, Cuda>& bias) {
  check_cuda(cuda::add_bias(images.data(), bias.data(), images.numel(), bias.numel(), native_stream()), "add_bias");
}

TRIREME_INSTANTIATE(FLOATS, conv2d, Cuda)
TRIREME_INSTANTIATE(FLOATS, conv2d_backward_data, Cuda)
TRIREME_INSTANTIATE(FLOATS, conv2d_backward_weight, Cuda)
TRIREME_INSTANTIATE(FLOATS, conv_transpose2d, Cuda)
TRIREME_INSTANTIATE(FLOATS, conv_transpose2d_backward_data, Cuda)
TRIREME_INSTANTIATE(FLOATS, conv_transpose2d_backward_weight, Cuda)

}  // namespace trireme::ops
