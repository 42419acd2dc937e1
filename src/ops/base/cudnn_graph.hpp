#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "ops/base/cudnn.hpp"

namespace trireme::ops {

// The GPU that a plan is made for: that of a handle, or one described in JSON. Planning for the latter needs no GPU, but the
// plan can't run.
struct CudnnDevice {
  cudnnHandle_t handle = nullptr;
  std::string description = {};
};

// What a plan must fulfil besides being correct.
struct CudnnPlanDemands {
  bool exact_floats = false;   // products of float are not in TF32
  bool deterministic = false;  // the same bits in every run
  std::size_t most_workspace_bytes = std::numeric_limits<std::size_t>::max();
};

using CudnnNotes = std::vector<cudnnBackendNumericalNote_t>;  // cuDNN's notes on the numerics of an engine

class CudnnPlan {
 public:
  CudnnPlan(const Cudnn& library, std::vector<CudnnDescriptor> parts, CudnnDescriptor plan, CudnnNotes notes);

  std::size_t workspace_bytes() const { return workspace_bytes_; }
  bool has(cudnnBackendNumericalNote_t note) const { return std::ranges::find(notes_, note) != notes_.end(); }

  struct Argument {
    std::int64_t id;  // of a tensor of the graph
    void* data;       // on the GPU; for a scalar on the host, read before the call returns
  };
  void execute(Cudnn& library, std::span<const Argument> arguments, void* workspace) const;

 private:
  std::vector<CudnnDescriptor> parts_;  // descriptors that the plan refers to
  CudnnDescriptor plan_;
  CudnnNotes notes_;
  std::size_t workspace_bytes_ = 0;
};

// A graph of operations on tensors of four dims, computed in float. Results are virtual tensors without memory, unless the
// caller names a tensor for them.
class CudnnGraph {
 public:
  using Dims = std::array<std::int64_t, 4>;
  struct Tensor {
    std::size_t index;  // of its descriptor
    cudnnDataType_t type;
    Dims dims;
    Dims strides;
  };

  explicit CudnnGraph(const Cudnn& library) : library_(&library) {}

  // A tensor of the caller, who passes its data to run() under this id.
  Tensor tensor(std::int64_t id, cudnnDataType_t type, const Dims& dims, const Dims& strides);
  Tensor scalar(std::int64_t id);  // a float
  Tensor temporary(cudnnDataType_t type, const Dims& dims, const Dims& strides);
  Tensor temporary(cudnnDataType_t type, const Dims& dims) { return temporary(type, dims, packed(dims)); }
  static Dims packed(const Dims& dims) { return {dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1}; }

  Tensor matmul(const Tensor& a, const Tensor& b);  // of the last two dims
  void matmul(const Tensor& a, const Tensor& b, const Tensor& product);
  Tensor pointwise(cudnnPointwiseMode_t mode, const Tensor& x);
  void pointwise(cudnnPointwiseMode_t mode, const Tensor& x, const Tensor& y);
  Tensor binary(cudnnPointwiseMode_t mode, const Tensor& a, const Tensor& b);  // b may be broadcast
  void binary(cudnnPointwiseMode_t mode, const Tensor& a, const Tensor& b, const Tensor& result);
  Tensor reduce_last_dim(cudnnReduceTensorOp_t op, const Tensor& x);
  void reduce(cudnnReduceTensorOp_t op, const Tensor& x, const Tensor& result);  // to the dims of the result
  Tensor transpose(const Tensor& x, cudnnDataType_t type);                       // the last two dims
  // scores [batch, heads, rows, columns] where the column is not after the row, `otherwise` elsewhere.
  Tensor lower_triangle(const Tensor& scores, const Tensor& otherwise);

  // Images and results are [batch, channels, height, width], filters [out, in / groups, height, width]; strides give their
  // order in memory. Computed in float, or in double for doubles.
  struct Convolution {
    using Pixels = std::array<std::int64_t, 2>;
    Pixels padding;
    Pixels stride;
    Pixels dilation;
  };
  void convolution(const Convolution& convolution, const Tensor& x, const Tensor& filter, const Tensor& y);
  void convolution_data(const Convolution& convolution, const Tensor& dy, const Tensor& filter, const Tensor& dx);
  void convolution_filter(const Convolution& convolution, const Tensor& x, const Tensor& dy, const Tensor& dfilter);

  // Makes the first plan, in the order of cuDNN's heuristics, that compiles and meets the demands. Throws Error{not_available}
  // if there is none.
  CudnnPlan plan(const CudnnDevice& device, const CudnnPlanDemands& demands = {}) &&;

 private:
  Tensor add_tensor(std::int64_t id, cudnnDataType_t type, const Dims& dims, const Dims& strides,
                    std::optional<cudnnBackendAttributeName_t> kind);
  Tensor indices(const Tensor& like, std::int64_t dim);
  struct Pointwise {
    cudnnPointwiseMode_t mode;
    cudnnDataType_t computed_in = CUDNN_DATA_FLOAT;
    std::int64_t dim = -1;  // of GEN_INDEX
  };
  CudnnDescriptor& add_pointwise(const Pointwise& pointwise, const Tensor& x, const Tensor& y);  // not yet finalized
  struct ConvolutionAttributes {  // the operation's attributes, which differ between the three passes
    cudnnBackendDescriptorType_t type;
    cudnnBackendAttributeName_t convolution;
    cudnnBackendAttributeName_t alpha;
    cudnnBackendAttributeName_t beta;
  };
  // Not yet finalized.
  CudnnDescriptor& add_convolution(const Convolution& convolution, cudnnDataType_t type, const ConvolutionAttributes& names);
  CudnnDescriptor& add(cudnnBackendDescriptorType_t type);
  CudnnDescriptor& add_operation(cudnnBackendDescriptorType_t type);
  const CudnnDescriptor& of(const Tensor& tensor) const { return parts_[tensor.index]; }

  const Cudnn* library_;
  std::vector<CudnnDescriptor> parts_;
  std::vector<std::size_t> operations_;
  std::int64_t next_id_ = 1 << 20;  // of temporaries
};

}  // namespace trireme::ops
