#pragma once

#include <cstdint>

#include "ops/base/cudnn_graph.hpp"
#include "ops/convolution/convolution_shape.hpp"

// Convolutions as graphs for cuDNN. Images are [batch, height, width, channels]; filters are [out, height, width, in / groups],
// another order than that of weights.
namespace trireme::ops {

struct ConvolutionGraph {
  enum class Pass : std::uint8_t { forward, data, filter };
  Pass pass;
  ConvolutionShape shape;  // its bias is ignored
  bool tf32;               // products of float may be in TF32

  friend auto operator<=>(const ConvolutionGraph&, const ConvolutionGraph&) = default;
};

// The ids of the arguments of a plan. A pass reads two of them and writes the third.
namespace convolution_argument {
enum : std::int64_t { x = 1, y, filter };
}

CudnnPlan plan_convolution(const Cudnn& library, const ConvolutionGraph& graph, const CudnnDevice& device);

}  // namespace trireme::ops
