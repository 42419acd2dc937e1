#include "trireme/ops/attention.hpp"

#include <array>
#include <cmath>
#include <utility>

#include "ops/check.hpp"
#include "ops/floats.hpp"
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

// Of one head, rounded up to whole cache lines.
std::int64_t matrix_elements(const Sizes& sizes) { return (sizes.time * sizes.size + 15) / 16 * 16; }

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

// Calls body(sequence, head, workspace) for every head of every sequence, on the threads of this rank. The workspace is that
// of the kernels, and before it `copies` matrices [time, size].
template <typename A, typename Body>
void for_each_head(const Sizes& sizes, std::int64_t copies, const Body& body) {
  const std::int64_t elements =
      copies * matrix_elements(sizes) + attention_kernels().of<A>().workspace(sizes.time, sizes.time, sizes.size);
  const std::int64_t work = std::max<std::int64_t>(sizes.time * sizes.time * sizes.size, 1);
  const std::int64_t threads = omp_get_max_threads();
  const Tensor<A, Cpu> workspaces({threads, elements});
  parallel_ranges(sizes.batch * sizes.heads, 1, (1 << 18) / work, [&](std::int64_t begin, std::int64_t end) {
    A* workspace = workspaces.data() + omp_get_thread_num() * elements;
    for (std::int64_t index = begin; index < end; ++index) body(index / sizes.heads, index % sizes.heads, workspace);
  });
}

// A matrix [time, size] of one head, rows `stride` apart, as the kernels take it: the caller's own elements, or floats in a
// workspace, of which each takes the first part.
template <typename A>
struct Rows {
  A* data;
  std::int64_t stride;
};
template <typename T>
Rows<Accumulate<T>> rows_for(T* elements, std::int64_t stride, const Sizes& sizes, Accumulate<T>*& workspace) {
  if constexpr (is_half<T>) {
    return {std::exchange(workspace, workspace + matrix_elements(sizes)), sizes.size};
  } else {
    return {elements, stride};
  }
}
template <typename T>
Rows<Accumulate<T>> read_rows(T* elements, std::int64_t stride, const Sizes& sizes, Accumulate<T>*& workspace) {
  const auto rows = rows_for(elements, stride, sizes, workspace);
  if constexpr (is_half<T>) {
    for (std::int64_t row = 0; row < sizes.time; ++row) {
      widen(elements + row * stride, rows.data + row * rows.stride, sizes.size);
    }
  }
  return rows;
}
template <typename T>
void write_rows(const Rows<Accumulate<T>>& rows, T* elements, std::int64_t stride, const Sizes& sizes) {
  if constexpr (is_half<T>) {
    for (std::int64_t row = 0; row < sizes.time; ++row) {
      narrow(rows.data + row * rows.stride, elements + row * stride, sizes.size);
    }
  }
}

template <typename T>
AttentionHead<Accumulate<T>> input_of_head(const Tensor<T, Cpu>& qkv, const Sizes& sizes, std::int64_t sequence,
                                           std::int64_t head, Accumulate<T>*& workspace) {
  const std::int64_t stride = 3 * sizes.width();
  const auto [q, k, v] = parts_of_head(qkv, sizes, sequence, head);
  const auto queries = read_rows(q, stride, sizes, workspace);
  const auto keys = read_rows(k, stride, sizes, workspace);
  const auto values = read_rows(v, stride, sizes, workspace);
  using A = Accumulate<T>;
  return {.q = queries.data,
          .k = keys.data,
          .v = values.data,
          .q_stride = queries.stride,
          .kv_stride = keys.stride,
          .queries = sizes.time,
          .keys = sizes.time,
          .size = sizes.size,
          .group = 1,
          .scale = A(1) / std::sqrt(static_cast<A>(sizes.size)),
          .causal = true,
          .hidden = nullptr};
}

}  // namespace

template <typename T, typename D>
void causal_attention(const Tensor<T, D>& qkv, int heads, Tensor<T, D>& out, Tensor<Accumulate<T>, D>& log_sum_exp) {
  using A = Accumulate<T>;
  const Sizes sizes = sizes_of("causal_attention", qkv, heads);
  require_shape("causal_attention", "out", out.shape(), {sizes.batch, sizes.time, sizes.width()});
  require_shape("causal_attention", "log_sum_exp", log_sum_exp.shape(), {sizes.batch, sizes.heads, sizes.time});
  const auto& kernels = attention_kernels().of<A>();
  for_each_head<A>(sizes, is_half<T> ? 4 : 0, [&](std::int64_t sequence, std::int64_t head, A* workspace) {
    T* place = out.data() + sequence * sizes.time * sizes.width() + head * sizes.size;
    const auto input = input_of_head(qkv, sizes, sequence, head, workspace);
    const auto rows = rows_for(place, sizes.width(), sizes, workspace);
    kernels.forward(input, rows.data, rows.stride, log_sum_exp.data() + (sequence * sizes.heads + head) * sizes.time,
                    workspace);
    write_rows(rows, place, sizes.width(), sizes);
  });
}

template <typename T, typename D>
void causal_attention_backward(const Tensor<T, D>& qkv, int heads, const Tensor<T, D>& out,
                               const Tensor<Accumulate<T>, D>& log_sum_exp, const Tensor<T, D>& dout, Tensor<T, D>& dqkv) {
  using A = Accumulate<T>;
  const Sizes sizes = sizes_of("causal_attention_backward", qkv, heads);
  const Shape out_shape{sizes.batch, sizes.time, sizes.width()};
  require_shape("causal_attention_backward", "out", out.shape(), out_shape);
  require_shape("causal_attention_backward", "dout", dout.shape(), out_shape);
  require_shape("causal_attention_backward", "log_sum_exp", log_sum_exp.shape(), {sizes.batch, sizes.heads, sizes.time});
  require_shape("causal_attention_backward", "dqkv", dqkv.shape(), qkv.shape());
  const auto& kernels = attention_kernels().of<A>();
  for_each_head<A>(sizes, is_half<T> ? 8 : 0, [&](std::int64_t sequence, std::int64_t head, A* workspace) {
    const std::int64_t place = sequence * sizes.time * sizes.width() + head * sizes.size;
    const std::int64_t stride = 3 * sizes.width();
    const auto input = input_of_head(qkv, sizes, sequence, head, workspace);
    const auto out_rows = read_rows(out.data() + place, sizes.width(), sizes, workspace);
    const auto dout_rows = read_rows(dout.data() + place, sizes.width(), sizes, workspace);
    const auto [dq, dk, dv] = parts_of_head(dqkv, sizes, sequence, head);
    const auto dq_rows = rows_for(dq, stride, sizes, workspace);
    const auto dk_rows = rows_for(dk, stride, sizes, workspace);
    const auto dv_rows = rows_for(dv, stride, sizes, workspace);
    kernels.backward(input,
                     {.out = out_rows.data,
                      .dout = dout_rows.data,
                      .out_stride = out_rows.stride,
                      .log_sum_exp = log_sum_exp.data() + (sequence * sizes.heads + head) * sizes.time,
                      .dq = dq_rows.data,
                      .dk = dk_rows.data,
                      .dv = dv_rows.data},
                     workspace);
    write_rows(dq_rows, dq, stride, sizes);
    write_rows(dk_rows, dk, stride, sizes);
    write_rows(dv_rows, dv, stride, sizes);
  });
}

#define TRIREME_INSTANTIATE(T)                                                                              \
  template void causal_attention(const Tensor<T, Cpu>&, int, Tensor<T, Cpu>&, Tensor<Accumulate<T>, Cpu>&); \
  template void causal_attention_backward(const Tensor<T, Cpu>&, int, const Tensor<T, Cpu>&,                \
                                          const Tensor<Accumulate<T>, Cpu>&, const Tensor<T, Cpu>&, Tensor<T, Cpu>&);
TRIREME_INSTANTIATE(float)
TRIREME_INSTANTIATE(double)
TRIREME_INSTANTIATE(bfloat16)
TRIREME_INSTANTIATE(float16)
#undef TRIREME_INSTANTIATE

}  // namespace trireme::ops
