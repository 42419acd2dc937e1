#pragma once

#include <compare>
#include <cstdint>

#include "ops/attention/attention_sizes.hpp"
#include "ops/base/cudnn_graph.hpp"

// Attention as graphs that cuDNN fuses into one forward kernel and a few backward kernels.
namespace trireme::ops {

struct AttentionGraph {
  cudnnDataType_t type;  // of all tensors, except that log_sum_exp and those that end in _sums are float
  AttentionSizes sizes;
  bool causal;  // with as many keys as queries

  friend auto operator<=>(const AttentionGraph&, const AttentionGraph&) = default;
};

// The ids of the arguments of the plans.
namespace attention_argument {
enum : std::int64_t {
  q = 1,
  k,
  v,
  out,
  log_sum_exp,     // [batch, heads, queries]
  scale,           // a scalar, as the two after it
  minus_infinity,  // of causal graphs only
  dout = 100,      // from here on arguments of the backward pass
  dq,
  dk,
  dv,
  one,
  dout_out_sums,  // [batch, heads, queries], scratch memory
  dq_sums,        // [batch, heads, queries, size], scratch memory
};
}

CudnnPlan plan_attention_forward(const Cudnn& library, const AttentionGraph& graph, const CudnnDevice& device);
CudnnPlan plan_attention_backward(const Cudnn& library, const AttentionGraph& graph, const CudnnDevice& device);

}  // namespace trireme::ops
