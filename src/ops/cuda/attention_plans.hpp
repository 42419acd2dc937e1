#pragma once

#include <map>
#include <optional>

#include "ops/cuda/attention_graph.hpp"

namespace trireme::ops {

// The plans that this thread has made, one for each graph: the first step with new shapes takes up to a second for it.
class AttentionPlans {
 public:
  AttentionPlans();

  // Null where cuDNN or a plan is missing, which is told once on stderr.
  const CudnnPlan* forward(const AttentionGraph& graph) { return find(forward_, plan_attention_forward, graph); }
  const CudnnPlan* backward(const AttentionGraph& graph) { return find(backward_, plan_attention_backward, graph); }

 private:
  using Table = std::map<AttentionGraph, std::optional<CudnnPlan>>;
  const CudnnPlan* find(Table& table, decltype(&plan_attention_forward) make, const AttentionGraph& graph) const;

  Cudnn* library_ = nullptr;  // null where it is missing
  Table forward_;
  Table backward_;
};

AttentionPlans& attention_plans();  // of this thread

}  // namespace trireme::ops
