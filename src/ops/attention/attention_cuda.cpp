#include "ops/attention/attention_cuda.hpp"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <string_view>
#include <vector>

#include "device/cuda/check.hpp"
#include "device/cuda/stream.hpp"
#include "ops/attention/attention_choice.hpp"
#include "ops/attention/attention_graph_cuda.hpp"
#include "ops/attention/attention_on.hpp"
#include "ops/attention/attention_tile_arguments.hpp"
#include "ops/base/cudnn_plan_table.hpp"
#include "ops/base/pack.hpp"
#include "precision/instantiate.hpp"
#include "trireme/ops/array/fill.hpp"
#include "trireme/ops/pointwise/functions.hpp"

namespace trireme::ops {
namespace {

template <typename Kernel>
void run_tiles(const Kernel& kernel, std::string_view operation) {
  require(kernel.rows > 0, "{}: a head of {} elements is too large for the memory of a GPU's multiprocessor", operation,
          kernel.size());
  device::check_cuda(cuda::run_tiles(kernel, device::native_stream()), operation);
}

template <typename T, typename Pass>
bool by_cudnn(const Pass& pass, const AttentionSizes& sizes, std::initializer_list<const void*> tensors) {
  const bool aligned = std::all_of(tensors.begin(), tensors.end(), is_aligned);
  return choose_attention_kernel({.dtype = dtype_of<T>,
                                  .sizes = sizes,
                                  .causal = pass.options.causal,
                                  .key_padding_mask = pass.key_padding_mask.defined(),
                                  .first_keys = pass.first_keys.defined() || pass.options.window > 0,
                                  .aligned = aligned})
             .kernel == AttentionKernel::cudnn;
}

template <typename T>
AttentionGraph graph_of(const AttentionOptions& options, const AttentionSizes& sizes) {
  return {.type = cudnn_data_type<T>, .sizes = sizes, .causal = options.causal};
}

// The arguments of a plan, and the scalars among them.
class Arguments {
 public:
  Arguments(const AttentionOptions& options, const AttentionSizes& sizes)
      : scale_(static_cast<float>(attention_scale(options, sizes))) {
    add(attention_argument::scale, &scale_);
    if (options.causal) add(attention_argument::minus_infinity, &minus_infinity_);
  }
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  void add(std::int64_t id, void* data) { arguments_.push_back({id, data}); }
  void add_one() { add(attention_argument::one, &one_); }
  template <typename T>
  void add_inputs(const AttentionPointers<T>& inputs) {
    add(attention_argument::q, inputs.q);
    add(attention_argument::k, inputs.k);
    add(attention_argument::v, inputs.v);
  }
  void execute(const CudnnPlan& plan) const {
    const device::Storage workspace(device::cuda_memory(), plan.workspace_bytes());
    plan.execute(cudnn(), arguments_, workspace.data());
  }

 private:
  float scale_;
  float minus_infinity_ = -std::numeric_limits<float>::infinity();
  float one_ = 1;
  std::vector<CudnnPlan::Argument> arguments_;
};

// Making the plans takes up to a second in the first step with new shapes.
CudnnPlanTable<AttentionGraph>& forward_plans() {
  thread_local CudnnPlanTable<AttentionGraph> plans("attention", plan_attention_forward);
  return plans;
}
CudnnPlanTable<AttentionGraph>& backward_plans() {
  thread_local CudnnPlanTable<AttentionGraph> plans("attention's backward pass", plan_attention_backward);
  return plans;
}

// The log-sum-exp of each query, for cuDNN's backward pass. cuDNN's forward pass stores it as the number, with a sum of 1.
template <typename A>
Tensor<A, Cuda> log_sums(const Tensor<A, Cuda>& exponentials) {
  return add(exponentials.narrow(0, 1), log(exponentials.narrow(1, 1)));
}

// Returns false if there is no plan.
template <typename T>
bool forward_by_cudnn(const AttentionForward<T, Cuda>& pass, const AttentionSizes& sizes) {
  const CudnnPlan* const plan = forward_plans().find(graph_of<T>(pass.options, sizes));
  if (plan == nullptr) return false;
  Arguments arguments(pass.options, sizes);
  arguments.add_inputs(attention_pointers(pass.q, pass.kv, sizes));
  arguments.add(attention_argument::out, pass.out.data());
  arguments.add(attention_argument::log_sum_exp, pass.exponentials.data());
  arguments.execute(*plan);
  Tensor<Accumulate<T>, Cuda> sums = pass.exponentials.narrow(1, 1);
  fill_elements(sums, 1);
  return true;
}

template <typename T>
bool backward_by_cudnn(const AttentionBackward<T, Cuda>& pass, const AttentionSizes& sizes) {
  const CudnnPlan* const plan = backward_plans().find(graph_of<T>(pass.options, sizes));
  if (plan == nullptr) return false;
  const Tensor<Accumulate<T>, Cuda> log_sum_exp = log_sums(pass.exponentials);
  const Tensor<float, Cuda> dout_out_sums(log_sum_exp.shape());
  const Tensor<float, Cuda> dq_sums(pass.out.shape());
  const auto [dq, dk, dv] = attention_pointers(pass.dq, pass.dkv, sizes);
  Arguments arguments(pass.options, sizes);
  arguments.add_one();
  arguments.add_inputs(attention_pointers(pass.q, pass.kv, sizes));
  arguments.add(attention_argument::out, pass.out.data());
  arguments.add(attention_argument::log_sum_exp, log_sum_exp.data());
  arguments.add(attention_argument::dout, pass.dout.data());
  arguments.add(attention_argument::dq, dq);
  arguments.add(attention_argument::dk, dk);
  arguments.add(attention_argument::dv, dv);
  arguments.add(attention_argument::dout_out_sums, dout_out_sums.data());
  arguments.add(attention_argument::dq_sums, dq_sums.data());
  arguments.execute(*plan);
  return true;
}

void require_one_size(const AttentionSizes& sizes) {
  require(sizes.value_size == sizes.size,
          "attention: on a GPU the values of a head have the size of its queries, {}, and not {}: compute this on the CPU",
          sizes.size, sizes.value_size);
}

}  // namespace

template <>
template <typename T>
void Attention<Cuda>::forward(const AttentionForward<T, Cuda>& pass, const AttentionSizes& sizes) {
  require_one_size(sizes);
  if (sizes.batch == 0) return;
  if (by_cudnn<T>(pass, sizes, {pass.q.data(), pass.kv.data(), pass.out.data(), pass.exponentials.data()}) &&
      forward_by_cudnn(pass, sizes))
    return;
  run_tiles(attention_forward_tile(pass, sizes), "attention");
}

template <>
template <typename T>
void Attention<Cuda>::backward(const AttentionBackward<T, Cuda>& pass, const AttentionSizes& sizes) {
  require_one_size(sizes);
  if (sizes.batch == 0) return;
  if (by_cudnn<T>(pass, sizes,
                  {pass.q.data(), pass.kv.data(), pass.out.data(), pass.exponentials.data(), pass.dout.data(), pass.dq.data(),
                   pass.dkv.data()}) &&
      backward_by_cudnn(pass, sizes)) {
    return;
  }
  const Tensor<Accumulate<T>, Cuda> delta({sizes.batch, sizes.heads, sizes.queries});
  const auto tiles = attention_backward_tiles(pass, sizes, delta);
  run_tiles(tiles.queries, "attention_backward");
  run_tiles(tiles.keys, "attention_backward");
}

TRIREME_INSTANTIATE(FLOATS, scaled_dot_product_attention, Cuda)
TRIREME_INSTANTIATE(FLOATS, scaled_dot_product_attention_backward, Cuda)

}  // namespace trireme::ops
