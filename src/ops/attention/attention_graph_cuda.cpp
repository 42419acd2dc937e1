#include "ops/attention/attention_graph_cuda.hpp"

namespace trireme::ops {
namespace {

using Dims = CudnnGraph::Dims;
using Node = CudnnGraph::Tensor;

// The caller's tensors as cuDNN sees them: [batch, heads, time, size], for any order in memory.
class AttentionTensors {
 public:
  AttentionTensors(CudnnGraph& graph, const AttentionGraph& attention)
      : graph_(&graph), sizes_(attention.sizes), type_(attention.type) {}

  Node queries(std::int64_t id) const {
    return graph_->tensor(id, type_, query_dims(), {sizes_.queries * sizes_.q_stride, sizes_.size, sizes_.q_stride, 1});
  }
  Node keys(std::int64_t id) const { return graph_->tensor(id, type_, key_dims(), key_strides()); }
  Node transposed_keys(std::int64_t id) const {  // [batch, kv heads, size, keys]
    const Dims strides = key_strides();
    return graph_->tensor(id, type_, {sizes_.batch, sizes_.kv_heads, sizes_.size, sizes_.keys},
                          {strides[0], strides[1], 1, strides[2]});
  }
  Node outputs(std::int64_t id) const {
    const std::int64_t width = sizes_.width();
    return graph_->tensor(id, type_, query_dims(), {sizes_.queries * width, sizes_.size, width, 1});
  }
  Node of_each_query(std::int64_t id) const {  // a float
    const Dims dims{sizes_.batch, sizes_.heads, sizes_.queries, 1};
    return graph_->tensor(id, CUDNN_DATA_FLOAT, dims, CudnnGraph::packed(dims));
  }
  Node query_sums(std::int64_t id) const {
    return graph_->tensor(id, CUDNN_DATA_FLOAT, query_dims(), CudnnGraph::packed(query_dims()));
  }

 private:
  Dims query_dims() const { return {sizes_.batch, sizes_.heads, sizes_.queries, sizes_.size}; }
  Dims key_dims() const { return {sizes_.batch, sizes_.kv_heads, sizes_.keys, sizes_.size}; }
  Dims key_strides() const { return {sizes_.key_rows * sizes_.kv_stride, sizes_.size, sizes_.kv_stride, 1}; }

  CudnnGraph* graph_;
  AttentionSizes sizes_;
  cudnnDataType_t type_;
};

Node masked(CudnnGraph& graph, const Node& scores, const AttentionGraph& attention) {
  return attention.causal ? graph.lower_triangle(scores, graph.scalar(attention_argument::minus_infinity)) : scores;
}

// to = transposed weights . rows, summed over the heads of queries that share keys.
void weighted_sum(CudnnGraph& graph, const Node& transposed_weights, const Node& rows, const Node& to) {
  if (rows.dims[1] == to.dims[1]) return graph.matmul(transposed_weights, rows, to);
  const Node of_each_head = graph.temporary(to.type, {to.dims[0], rows.dims[1], to.dims[2], to.dims[3]});
  graph.matmul(transposed_weights, rows, of_each_head);
  graph.reduce(CUDNN_REDUCE_TENSOR_ADD, of_each_head, to);
}

}  // namespace

CudnnPlan plan_attention_forward(const Cudnn& library, const AttentionGraph& attention, const CudnnDevice& device) {
  CudnnGraph graph(library);
  const AttentionTensors tensors(graph, attention);
  const Node products = graph.matmul(tensors.queries(attention_argument::q), tensors.transposed_keys(attention_argument::k));
  const Node scaled = graph.binary(CUDNN_POINTWISE_MUL, products, graph.scalar(attention_argument::scale));
  const Node scores = masked(graph, scaled, attention);

  const Node largest = graph.reduce_last_dim(CUDNN_REDUCE_TENSOR_MAX, scores);
  const Node exponentials = graph.pointwise(CUDNN_POINTWISE_EXP, graph.binary(CUDNN_POINTWISE_SUB, scores, largest));
  const Node sums = graph.reduce_last_dim(CUDNN_REDUCE_TENSOR_ADD, exponentials);
  graph.binary(CUDNN_POINTWISE_ADD, largest, graph.pointwise(CUDNN_POINTWISE_LOG, sums),
               tensors.of_each_query(attention_argument::log_sum_exp));

  const Node probabilities = graph.temporary(attention.type, exponentials.dims);
  graph.binary(CUDNN_POINTWISE_DIV, exponentials, sums, probabilities);
  graph.matmul(probabilities, tensors.keys(attention_argument::v), tensors.outputs(attention_argument::out));
  return std::move(graph).plan(device);
}

CudnnPlan plan_attention_backward(const Cudnn& library, const AttentionGraph& attention, const CudnnDevice& device) {
  CudnnGraph graph(library);
  const AttentionTensors tensors(graph, attention);
  const Node q = tensors.queries(attention_argument::q);
  const Node k = tensors.transposed_keys(attention_argument::k);
  const Node v = tensors.transposed_keys(attention_argument::v);
  const Node dout = tensors.outputs(attention_argument::dout);
  const Node scale = graph.scalar(attention_argument::scale);

  // sums of dout * out: the part of the softmax's gradient that is the same for all keys of a query. cuDNN recognizes the graph
  // by its form, which includes the product with 1.
  const Node dout_out = graph.binary(CUDNN_POINTWISE_MUL, dout, tensors.outputs(attention_argument::out));
  const Node dout_out_sums = tensors.of_each_query(attention_argument::dout_out_sums);
  graph.binary(CUDNN_POINTWISE_MUL, graph.reduce_last_dim(CUDNN_REDUCE_TENSOR_ADD, dout_out),
               graph.scalar(attention_argument::one), dout_out_sums);

  // dv = p^T dout
  const Node scaled = graph.binary(CUDNN_POINTWISE_MUL, graph.matmul(q, k), scale);
  const Node logs = graph.binary(CUDNN_POINTWISE_SUB, scaled, tensors.of_each_query(attention_argument::log_sum_exp));
  const Node p = graph.pointwise(CUDNN_POINTWISE_EXP, masked(graph, logs, attention));
  weighted_sum(graph, graph.transpose(p, attention.type), dout, tensors.keys(attention_argument::dv));

  // ds = scale * p * (dout v^T - sums), dk = ds^T q
  const Node dp = graph.binary(CUDNN_POINTWISE_SUB, graph.matmul(dout, v), dout_out_sums);
  const Node ds = graph.binary(CUDNN_POINTWISE_MUL, graph.binary(CUDNN_POINTWISE_MUL, dp, p), scale);
  weighted_sum(graph, graph.transpose(ds, attention.type), q, tensors.keys(attention_argument::dk));

  // dq = ds k. Blocks of keys add to it in float, in the order in which they end: its last bits may differ from run to run
  const Node dq_sums = tensors.query_sums(attention_argument::dq_sums);
  graph.matmul(ds, graph.transpose(k, attention.type), dq_sums);
  graph.pointwise(CUDNN_POINTWISE_IDENTITY, dq_sums, tensors.queries(attention_argument::dq));
  return std::move(graph).plan(device);
}

}  // namespace trireme::ops
