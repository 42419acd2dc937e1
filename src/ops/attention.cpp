#include "trireme/ops/attention.hpp"

#include <cmath>

#include "ops/kernels/tables.hpp"
#include "ops/parallel_for.hpp"

namespace trireme::ops {
namespace {

// Calls body(head, batch, number, workspace) for every head of every sample, heads spread over the threads.
template <typename T, typename Body>
void for_each_head(const Tensor<T>& qkv, int heads, Body body) {
  require(qkv.shape().size() == 3 && heads > 0 && qkv.dim(2) % (3 * heads) == 0,
          "causal_attention: qkv {} is not [batch, time, 3 * width] with a width that {} heads divide", qkv.shape().str(),
          heads);
  const std::int64_t time = qkv.dim(1);
  const std::int64_t width = qkv.dim(2) / 3;
  const std::int64_t size = width / heads;
  const std::int64_t workspace_elements = kernels::attention<T>().workspace_elements(time, size);
  parallel_for(qkv.dim(0) * heads, 1, [&](std::int64_t begin, std::int64_t end) {
    const Tensor<T> workspace({workspace_elements});
    for (std::int64_t index = begin; index < end; ++index) {
      const std::int64_t batch = index / heads;
      const std::int64_t head = index % heads;
      const T* q = qkv.data() + batch * time * 3 * width + head * size;
      body(typename kernels::Attention<T>::Head{.time = time,
                                                .size = size,
                                                .qkv_stride = 3 * width,
                                                .out_stride = width,
                                                .q = q,
                                                .k = q + width,
                                                .v = q + 2 * width,
                                                .scale = static_cast<T>(1 / std::sqrt(static_cast<double>(size))),
                                                .workspace = workspace.data()},
           batch * time * width + head * size, index * time, q - qkv.data());
    }
  });
}

}  // namespace

template <typename T, typename D>
void causal_attention(const Tensor<T, D>& qkv, int heads, Tensor<T, D>& out, Tensor<T, D>& log_sum_exp) {
  for_each_head(qkv, heads, [&](const auto& head, std::int64_t out_offset, std::int64_t row_offset, std::int64_t) {
    kernels::attention<T>().forward(head, out.data() + out_offset, log_sum_exp.data() + row_offset);
  });
}

template <typename T, typename D>
void causal_attention_backward(const Tensor<T, D>& qkv, int heads, const Tensor<T, D>& out, const Tensor<T, D>& log_sum_exp,
                               const Tensor<T, D>& dout, Tensor<T, D>& dqkv) {
  const std::int64_t width = qkv.dim(2) / 3;
  for_each_head(qkv, heads, [&](const auto& head, std::int64_t out_offset, std::int64_t row_offset, std::int64_t qkv_offset) {
    T* dq = dqkv.data() + qkv_offset;
    kernels::attention<T>().backward(head, out.data() + out_offset, log_sum_exp.data() + row_offset, dout.data() + out_offset,
                                     dq, dq + width, dq + 2 * width);
  });
}

#define TRIREME_INSTANTIATE(T)                                                                                      \
  template void causal_attention(const Tensor<T, Cpu>&, int, Tensor<T, Cpu>&, Tensor<T, Cpu>&);                     \
  template void causal_attention_backward(const Tensor<T, Cpu>&, int, const Tensor<T, Cpu>&, const Tensor<T, Cpu>&, \
                                          const Tensor<T, Cpu>&, Tensor<T, Cpu>&)
TRIREME_INSTANTIATE(float);
TRIREME_INSTANTIATE(double);

}  // namespace trireme::ops
