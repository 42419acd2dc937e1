#include "ops/base/cudnn_graph.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "trireme/core/error.hpp"

namespace trireme::ops {
namespace {

constexpr std::int64_t alignment = 16;  // of every tensor, in bytes

// The configurations of engines that may run a graph, the most promising first.
std::vector<CudnnDescriptor> engine_configurations(const Cudnn& library, const CudnnDescriptor& heuristics) {
  std::int64_t count = 0;
  library.check(
      library.get_attribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr),
      "cudnnBackendGetAttribute");
  std::vector<CudnnDescriptor> configurations;
  std::vector<cudnnBackendDescriptor_t> results;
  for (std::int64_t i = 0; i < count; ++i) {
    results.push_back(configurations.emplace_back(library, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).get());
  }
  library.check(library.get_attribute(heuristics.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count,
                                      &count, results.data()),
                "cudnnBackendGetAttribute");
  configurations.erase(configurations.begin() + static_cast<std::ptrdiff_t>(count), configurations.end());
  return configurations;
}

CudnnNotes notes_of(const Cudnn& library, const CudnnDescriptor& configuration) {
  const CudnnDescriptor engine(library, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t place = engine.get();
  std::int64_t count = 0;
  library.check(
      library.get_attribute(configuration.get(), CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &place),
      "cudnnBackendGetAttribute");
  CudnnNotes notes(CUDNN_NUMERICAL_NOTE_TYPE_COUNT);
  library.check(library.get_attribute(engine.get(), CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                      CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, notes.data()),
                "cudnnBackendGetAttribute");
  notes.resize(static_cast<std::size_t>(count));
  return notes;
}

bool meets(const CudnnPlanDemands& demands, const CudnnNotes& notes) {
  const auto has = [&](cudnnBackendNumericalNote_t note) { return std::ranges::find(notes, note) != notes.end(); };
  if (demands.exact_floats && (has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE) || has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS))) {
    return false;
  }
  return !demands.deterministic || !has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
}

std::size_t workspace_bytes_of(const Cudnn& library, const CudnnDescriptor& plan) {
  std::int64_t bytes = 0;
  std::int64_t count = 0;
  library.check(
      library.get_attribute(plan.get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &count, &bytes),
      "cudnnBackendGetAttribute");
  return static_cast<std::size_t>(bytes);
}

}  // namespace

CudnnPlan::CudnnPlan(const Cudnn& library, std::vector<CudnnDescriptor> parts, CudnnDescriptor plan, CudnnNotes notes)
    : parts_(std::move(parts)), plan_(std::move(plan)), notes_(std::move(notes)) {
  workspace_bytes_ = workspace_bytes_of(library, plan_);
}

void CudnnPlan::execute(Cudnn& library, std::span<const Argument> arguments, void* workspace) const {
  std::vector<std::int64_t> ids;
  std::vector<void*> data;
  for (const Argument& argument : arguments) {
    ids.push_back(argument.id);
    data.push_back(argument.data);
  }
  CudnnDescriptor pack(library, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, std::span<const std::int64_t>(ids))
      .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, std::span<void* const>(data))
      .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, workspace)
      .finalize();
  library.check(library.execute(library.handle(), plan_.get(), pack.get()), "cudnnBackendExecute");
}

CudnnGraph::Tensor CudnnGraph::add_tensor(std::int64_t id, cudnnDataType_t type, const Dims& dims, const Dims& strides,
                                          std::optional<cudnnBackendAttributeName_t> kind) {
  CudnnDescriptor& descriptor = add(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  descriptor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, id)
      .set(CUDNN_ATTR_TENSOR_DATA_TYPE, type)
      .set(CUDNN_ATTR_TENSOR_DIMENSIONS, std::span<const std::int64_t>(dims))
      .set(CUDNN_ATTR_TENSOR_STRIDES, std::span<const std::int64_t>(strides))
      .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, alignment);
  if (kind) descriptor.set(*kind, true);
  descriptor.finalize();
  return {parts_.size() - 1, type, dims, strides};
}

CudnnGraph::Tensor CudnnGraph::tensor(std::int64_t id, cudnnDataType_t type, const Dims& dims, const Dims& strides) {
  return add_tensor(id, type, dims, strides, {});
}
CudnnGraph::Tensor CudnnGraph::scalar(std::int64_t id) {
  return add_tensor(id, CUDNN_DATA_FLOAT, {1, 1, 1, 1}, {1, 1, 1, 1}, CUDNN_ATTR_TENSOR_IS_BY_VALUE);
}
CudnnGraph::Tensor CudnnGraph::temporary(cudnnDataType_t type, const Dims& dims, const Dims& strides) {
  return add_tensor(next_id_++, type, dims, strides, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
}

CudnnGraph::Tensor CudnnGraph::matmul(const Tensor& a, const Tensor& b) {
  const Tensor product = temporary(CUDNN_DATA_FLOAT, {a.dims[0], a.dims[1], a.dims[2], b.dims[3]});
  matmul(a, b, product);
  return product;
}
void CudnnGraph::matmul(const Tensor& a, const Tensor& b, const Tensor& product) {
  const std::size_t matmul = parts_.size();
  add(CUDNN_BACKEND_MATMUL_DESCRIPTOR).set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT).finalize();
  CudnnDescriptor& operation = add_operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  operation.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, of(a))
      .set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, of(b))
      .set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, of(product))
      .set(CUDNN_ATTR_OPERATION_MATMUL_DESC, parts_[matmul])
      .finalize();
}

CudnnDescriptor& CudnnGraph::add_pointwise(const Pointwise& pointwise, const Tensor& x, const Tensor& y) {
  const std::size_t description = parts_.size();
  CudnnDescriptor& mode = add(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  mode.set(CUDNN_ATTR_POINTWISE_MODE, pointwise.mode).set(CUDNN_ATTR_POINTWISE_MATH_PREC, pointwise.computed_in);
  if (pointwise.dim >= 0) mode.set(CUDNN_ATTR_POINTWISE_AXIS, pointwise.dim);
  mode.finalize();
  return add_operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, parts_[description])
      .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, of(x))
      .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, of(y));
}

CudnnGraph::Tensor CudnnGraph::pointwise(cudnnPointwiseMode_t mode, const Tensor& x) {
  const Tensor y = temporary(CUDNN_DATA_FLOAT, x.dims, x.strides);
  pointwise(mode, x, y);
  return y;
}
void CudnnGraph::pointwise(cudnnPointwiseMode_t mode, const Tensor& x, const Tensor& y) {
  add_pointwise({.mode = mode}, x, y).finalize();
}

CudnnGraph::Tensor CudnnGraph::binary(cudnnPointwiseMode_t mode, const Tensor& a, const Tensor& b) {
  const Tensor result = temporary(CUDNN_DATA_FLOAT, a.dims);
  binary(mode, a, b, result);
  return result;
}
void CudnnGraph::binary(cudnnPointwiseMode_t mode, const Tensor& a, const Tensor& b, const Tensor& result) {
  add_pointwise({.mode = mode}, a, result).set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, of(b)).finalize();
}

CudnnGraph::Tensor CudnnGraph::reduce_last_dim(cudnnReduceTensorOp_t op, const Tensor& x) {
  const Tensor result = temporary(CUDNN_DATA_FLOAT, {x.dims[0], x.dims[1], x.dims[2], 1});
  reduce(op, x, result);
  return result;
}
void CudnnGraph::reduce(cudnnReduceTensorOp_t op, const Tensor& x, const Tensor& result) {
  const std::size_t reduction = parts_.size();
  add(CUDNN_BACKEND_REDUCTION_DESCRIPTOR)
      .set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT)
      .set(CUDNN_ATTR_REDUCTION_OPERATOR, op)
      .finalize();
  add_operation(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR)
      .set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, of(x))
      .set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, of(result))
      .set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, parts_[reduction])
      .finalize();
}

CudnnGraph::Tensor CudnnGraph::transpose(const Tensor& x, cudnnDataType_t type) {
  const auto swapped = [](const Dims& of) { return Dims{of[0], of[1], of[3], of[2]}; };
  const Tensor y = temporary(type, swapped(x.dims), swapped(x.strides));
  add_operation(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR)
      .set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, of(x))
      .set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, of(y))
      .finalize();
  return y;
}

CudnnDescriptor& CudnnGraph::add_convolution(const Convolution& convolution, cudnnDataType_t type,
                                             const ConvolutionAttributes& names) {
  const auto pixels = [](const Convolution::Pixels& values) { return std::span<const std::int64_t>(values); };
  const bool doubles = type == CUDNN_DATA_DOUBLE;
  const std::size_t description = parts_.size();
  add(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR)
      .set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, doubles ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT)
      .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION)
      .set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, std::int64_t{2})
      .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, pixels(convolution.padding))
      .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, pixels(convolution.padding))
      .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, pixels(convolution.stride))
      .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, pixels(convolution.dilation))
      .finalize();
  CudnnDescriptor& operation = add_operation(names.type).set(names.convolution, parts_[description]);
  return doubles ? operation.set(names.alpha, 1.0).set(names.beta, 0.0)
                 : operation.set(names.alpha, 1.0F).set(names.beta, 0.0F);
}

void CudnnGraph::convolution(const Convolution& convolution, const Tensor& x, const Tensor& filter, const Tensor& y) {
  add_convolution(convolution, x.type,
                  {.type = CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                   .convolution = CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                   .alpha = CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
                   .beta = CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA})
      .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, of(x))
      .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, of(filter))
      .set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, of(y))
      .finalize();
}
void CudnnGraph::convolution_data(const Convolution& convolution, const Tensor& dy, const Tensor& filter, const Tensor& dx) {
  add_convolution(convolution, dy.type,
                  {.type = CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                   .convolution = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                   .alpha = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                   .beta = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA})
      .set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY, of(dy))
      .set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, of(filter))
      .set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, of(dx))
      .finalize();
}
void CudnnGraph::convolution_filter(const Convolution& convolution, const Tensor& x, const Tensor& dy, const Tensor& dfilter) {
  add_convolution(convolution, x.type,
                  {.type = CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                   .convolution = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
                   .alpha = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
                   .beta = CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA})
      .set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X, of(x))
      .set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY, of(dy))
      .set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, of(dfilter))
      .finalize();
}

CudnnGraph::Tensor CudnnGraph::indices(const Tensor& like, std::int64_t dim) {
  const Tensor result = temporary(CUDNN_DATA_INT32, like.dims);
  add_pointwise({.mode = CUDNN_POINTWISE_GEN_INDEX, .computed_in = CUDNN_DATA_INT32, .dim = dim}, like, result).finalize();
  return result;
}
CudnnGraph::Tensor CudnnGraph::lower_triangle(const Tensor& scores, const Tensor& otherwise) {
  const Tensor rows = indices(scores, 2);
  const Tensor columns = indices(scores, 3);
  const Tensor kept = temporary(CUDNN_DATA_BOOLEAN, scores.dims);
  add_pointwise({.mode = CUDNN_POINTWISE_CMP_GE, .computed_in = CUDNN_DATA_BOOLEAN}, rows, kept)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, of(columns))
      .finalize();
  const Tensor result = temporary(CUDNN_DATA_FLOAT, scores.dims);
  add_pointwise({.mode = CUDNN_POINTWISE_BINARY_SELECT}, scores, result)
      .set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, of(otherwise))
      .set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, of(kept))
      .finalize();
  return result;
}

CudnnPlan CudnnGraph::plan(const CudnnDevice& device, const CudnnPlanDemands& demands) && {
  std::vector<cudnnBackendDescriptor_t> operations;
  for (const std::size_t operation : operations_) operations.push_back(parts_[operation].get());
  CudnnDescriptor graph(*library_, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, operations.size(), operations.data());
  CudnnDescriptor heuristics(*library_, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  std::optional<CudnnDescriptor> description;
  if (device.handle != nullptr) {
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, device.handle);
  } else {
    description.emplace(*library_, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    description->set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, std::span<const char>(device.description)).finalize();
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *description);
  }
  graph.finalize();
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph).set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_HEUR_MODE_A).finalize();

  std::string reason = "cuDNN has no engine for this graph";
  for (CudnnDescriptor& configuration : engine_configurations(*library_, heuristics)) {
    CudnnNotes notes = notes_of(*library_, configuration);
    if (!meets(demands, notes)) continue;
    try {
      CudnnDescriptor plan(*library_, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
      plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, configuration);
      if (description) {
        plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *description);
      } else {
        plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, device.handle);
      }
      plan.finalize();
      if (workspace_bytes_of(*library_, plan) > demands.most_workspace_bytes) continue;
      parts_.push_back(std::move(graph));
      parts_.push_back(std::move(configuration));
      if (description) parts_.push_back(std::move(*description));
      return CudnnPlan(*library_, std::move(parts_), std::move(plan), std::move(notes));
    } catch (const Error& error) {
      reason = error.what();  // the next engine may work
    }
  }
  throw Error({.code = ErrorCode::not_available, .message = reason});
}

CudnnDescriptor& CudnnGraph::add(cudnnBackendDescriptorType_t type) { return parts_.emplace_back(*library_, type); }
CudnnDescriptor& CudnnGraph::add_operation(cudnnBackendDescriptorType_t type) {
  operations_.push_back(parts_.size());
  return add(type);
}

}  // namespace trireme::ops
