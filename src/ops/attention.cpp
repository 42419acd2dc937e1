#include "trireme/ops/attention.hpp"

#include <array>

#include "ops/check.hpp"
#include "ops/kernels/attention.hpp"
#include "ops/parallel.hpp"

namespace trireme::ops {
namespace {

struct Sizes {
  std::int64_t batch;
  std::int64_t heads;
  std::int64_t time;
  std::int64_t size;  // of a head
  std::int64_t width() const { return heads * size; }
};

template <typename T>
Sizes sizes_of(std::string_view op, const Tensor<T, Cpu>& qkv, int heads) {
  require(qkv.shape().size() == 3, "{}: qkv has shape {}, but needs [batch, time, 3 * width]", op, qkv.shape());
  require(heads > 0 && qkv.dim(2) % (3 * heads) == 0, "{}: qkv of shape {} does not split into q, k and v of {} heads", op,
          qkv.shape(), heads);
  return {.batch = qkv.dim(0), .heads = heads, .time = qkv.dim(1), .size = qkv.dim(2) / (3 * heads)};
}

// Where the queries, keys and values of a head lie in a packed tensor.
template <typename T>
std::array<T*, 3> parts_of_head(const Tensor<T, Cpu>& packed, const Sizes& sizes, std::int64_t sequence, std::int64_t head) {
  T* q = packed.data() + sequence * sizes.time * 3 * sizes.width() + head * sizes.size;
  return {q, q + sizes.width(), q + 2 * sizes.width()};
}

// Calls body(sequence, head, workspace) for every head of every sequence, on the threads of this rank.
template <typename T, typename Body>
void for_each_head(const Sizes& sizes, const Body& body) {
  const std::int64_t elements = attention_kernels().of<T>().workspace(sizes.time, sizes.size);
  const std::int64_t work = std::max<std::int64_t>(sizes.time * sizes.time * sizes.size, 1);
  const std::int64_t threads = omp_get_max_threads();
  const Tensor<T, Cpu> workspaces({threads, elements});
  parallel_ranges(sizes.batch * sizes.heads, 1, (1 << 18) / work, [&](std::int64_t begin, std::int64_t end) {
    T* workspace = workspaces.data() + omp_get_thread_num() * elements;
    for (std::int64_t index = begin; index < end; ++index) body(index / sizes.heads, index % sizes.heads, workspace);
  });
}

template <typename T>
AttentionHead<T> input_of_head(const Tensor<T, Cpu>& qkv, const Sizes& sizes, std::int64_t sequence, std::int64_t head) {
  const auto [q, k, v] = parts_of_head(qkv, sizes, sequence, head);
  return {.q = q, .k = k, .v = v, .stride = 3 * sizes.width(), .time = sizes.time, .size = sizes.size};
}

}  // namespace

template <typename T, typename D>
void causal_attention(const Tensor<T, D>& qkv, int heads, Tensor<T, D>& out, Tensor<T, D>& log_sum_exp) {
  const Sizes sizes = sizes_of("causal_attention", qkv, heads);
  require_shape("causal_attention", "out", out.shape(), {sizes.batch, sizes.time, sizes.width()});
  require_shape("causal_attention", "log_sum_exp", log_sum_exp.shape(), {sizes.batch, sizes.heads, sizes.time});
  const auto& kernels = attention_kernels().of<T>();
  for_each_head<T>(sizes, [&](std::int64_t sequence, std::int64_t head, T* workspace) {
    kernels.forward(input_of_head(qkv, sizes, sequence, head),
                    out.data() + sequence * sizes.time * sizes.width() + head * sizes.size, sizes.width(),
                    log_sum_exp.data() + (sequence * sizes.heads + head) * sizes.time, workspace);
  });
}

template <typename T, typename D>
void causal_attention_backward(const Tensor<T, D>& qkv, int heads, const Tensor<T, D>& out, const Tensor<T, D>& log_sum_exp,
                               const Tensor<T, D>& dout, Tensor<T, D>& dqkv) {
  const Sizes sizes = sizes_of("causal_attention_backward", qkv, heads);
  const Shape out_shape{sizes.batch, sizes.time, sizes.width()};
  require_shape("causal_attention_backward", "out", out.shape(), out_shape);
  require_shape("causal_attention_backward", "dout", dout.shape(), out_shape);
  require_shape("causal_attention_backward", "log_sum_exp", log_sum_exp.shape(), {sizes.batch, sizes.heads, sizes.time});
  require_shape("causal_attention_backward", "dqkv", dqkv.shape(), qkv.shape());
  const auto& kernels = attention_kernels().of<T>();
  for_each_head<T>(sizes, [&](std::int64_t sequence, std::int64_t head, T* workspace) {
    const std::int64_t place = sequence * sizes.time * sizes.width() + head * sizes.size;
    const auto [dq, dk, dv] = parts_of_head(dqkv, sizes, sequence, head);
    kernels.backward(input_of_head(qkv, sizes, sequence, head),
                     {.out = out.data() + place,
                      .dout = dout.data() + place,
                      .out_stride = sizes.width(),
                      .log_sum_exp = log_sum_exp.data() + (sequence * sizes.heads + head) * sizes.time,
                      .dq = dq,
                      .dk = dk,
                      .dv = dv},
                     workspace);
  });
}

#define TRIREME_INSTANTIATE(T)                                                                                      \
  template void causal_attention(const Tensor<T, Cpu>&, int, Tensor<T, Cpu>&, Tensor<T, Cpu>&);                     \
  template void causal_attention_backward(const Tensor<T, Cpu>&, int, const Tensor<T, Cpu>&, const Tensor<T, Cpu>&, \
                                          const Tensor<T, Cpu>&, Tensor<T, Cpu>&);
TRIREME_INSTANTIATE(float)
TRIREME_INSTANTIATE(double)
#undef TRIREME_INSTANTIATE

}  // namespace trireme::ops
