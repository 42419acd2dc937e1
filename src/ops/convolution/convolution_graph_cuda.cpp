#include "ops/convolution/convolution_graph_cuda.hpp"

namespace trireme::ops {
namespace {

using Dims = CudnnGraph::Dims;
using Node = CudnnGraph::Tensor;

constexpr std::size_t most_workspace_bytes = std::size_t{1} << 30;

cudnnDataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::float64: return CUDNN_DATA_DOUBLE;
    case DType::bfloat16: return CUDNN_DATA_BFLOAT16;
    case DType::float16: return CUDNN_DATA_HALF;
    default: return CUDNN_DATA_FLOAT;
  }
}

// Strides for dims in cuDNN's order, with channels last in memory.
Dims channels_last(const Dims& dims) { return {dims[1] * dims[2] * dims[3], 1, dims[3] * dims[1], dims[1]}; }

class ConvolutionTensors {
 public:
  ConvolutionTensors(CudnnGraph& graph, const ConvolutionShape& shape)
      : graph_(&graph), shape_(shape), type_(data_type(shape.operands)) {}

  Node x() const { return of(convolution_argument::x, {shape_.batch, shape_.in, shape_.x.height, shape_.x.width}); }
  Node y() const { return of(convolution_argument::y, {shape_.batch, shape_.out, shape_.y.height, shape_.y.width}); }
  Node filter() const {
    return of(convolution_argument::filter, {shape_.out, shape_.in / shape_.groups, shape_.kernel.height, shape_.kernel.width});
  }

 private:
  Node of(std::int64_t id, const Dims& dims) const { return graph_->tensor(id, type_, dims, channels_last(dims)); }

  CudnnGraph* graph_;
  ConvolutionShape shape_;
  cudnnDataType_t type_;
};

CudnnGraph::Convolution convolution_of(const ConvolutionShape& shape) {
  const auto pixels = [](const Extent2d& extent) { return CudnnGraph::Convolution::Pixels{extent.height, extent.width}; };
  return {.padding = pixels(shape.padding), .stride = pixels(shape.stride), .dilation = pixels(shape.dilation)};
}

}  // namespace

CudnnPlan plan_convolution(const Cudnn& library, const ConvolutionGraph& of, const CudnnDevice& device) {
  CudnnGraph graph(library);
  const ConvolutionTensors tensors(graph, of.shape);
  const auto convolution = convolution_of(of.shape);
  switch (of.pass) {
    case ConvolutionGraph::Pass::forward: graph.convolution(convolution, tensors.x(), tensors.filter(), tensors.y()); break;
    case ConvolutionGraph::Pass::data: graph.convolution_data(convolution, tensors.y(), tensors.filter(), tensors.x()); break;
    case ConvolutionGraph::Pass::filter:
      graph.convolution_filter(convolution, tensors.x(), tensors.y(), tensors.filter());
      break;
  }
  return std::move(graph).plan(device, {.exact_floats = of.shape.operands == DType::float32 && !of.tf32,
                                        .deterministic = true,
                                        .most_workspace_bytes = most_workspace_bytes});
}

}  // namespace trireme::ops
