#include "trireme/ops/scaled_dot_product_attention.hpp"

#include <cmath>

#include "ops/check.hpp"
#include "ops/kernels/attention.hpp"
#include "ops/parallel.hpp"

namespace trireme::ops {
namespace {

struct Sizes {
  std::int64_t batch;
  std::int64_t queries;
  std::int64_t keys;      // in use
  std::int64_t key_rows;  // of kv
  std::int64_t heads;
  std::int64_t kv_heads;
  std::int64_t size;  // of a head
  std::int64_t q_stride;
  std::int64_t kv_stride;
  bool packed;

  std::int64_t group() const { return heads / kv_heads; }
  std::int64_t width() const { return heads * size; }
  Shape out() const { return {batch, queries, width()}; }
};

Sizes sizes_of(const Shape& q, const Shape& kv, const AttentionOptions& options) {
  const bool packed = kv.size() == 0;
  const std::int64_t heads = options.heads;
  const std::int64_t kv_heads = options.kv_heads == 0 ? heads : options.kv_heads;
  require(heads > 0 && kv_heads > 0 && heads % kv_heads == 0, "attention: {} heads cannot share {} heads of keys and values",
          heads, kv_heads);
  require(q.size() == 3, "attention: q has shape {}, but needs [batch, time, width]", q);
  const std::int64_t parts = packed ? heads + 2 * kv_heads : heads;
  require(q[2] > 0 && q[2] % parts == 0, "attention: q of shape {} does not split into {} heads", q, parts);
  const std::int64_t size = q[2] / parts;
  if (!packed) {
    require(kv.size() == 3 && kv[0] == q[0] && kv[2] == 2 * kv_heads * size,
            "attention: kv has shape {}, but q of shape {} needs [{}, keys, {}]", kv, q, q[0], 2 * kv_heads * size);
  }
  const std::int64_t key_rows = packed ? q[1] : kv[1];
  const std::int64_t keys = options.keys == 0 ? key_rows : options.keys;
  require(keys > 0 && keys <= key_rows && q[1] > 0, "attention: {} queries and {} of {} keys", q[1], keys, key_rows);
  require(!options.causal || keys >= q[1], "attention: causal, but {} queries are more than {} keys", q[1], keys);
  return {.batch = q[0],
          .queries = q[1],
          .keys = keys,
          .key_rows = key_rows,
          .heads = heads,
          .kv_heads = kv_heads,
          .size = size,
          .q_stride = q[2],
          .kv_stride = packed ? q[2] : kv[2],
          .packed = packed};
}

// Where the first query head of a group and its keys and values lie, in the inputs or in their gradients.
template <typename T>
struct Parts {
  T* q;
  T* k;
  T* v;
};
template <typename T>
Parts<T> parts_of(const Tensor<T, Cpu>& q, const Tensor<T, Cpu>& kv, const Sizes& sizes, std::int64_t sequence,
                  std::int64_t kv_head) {
  T* const queries = q.data() + sequence * sizes.queries * sizes.q_stride;
  T* const keys = sizes.packed ? queries + sizes.width() : kv.data() + sequence * sizes.key_rows * sizes.kv_stride;
  T* const k = keys + kv_head * sizes.size;
  return {queries + kv_head * sizes.group() * sizes.size, k, k + sizes.kv_heads * sizes.size};
}

// Calls body(head, sequence, kv head, workspace) for every group of heads of every sequence, on the threads of this rank.
template <typename T, typename Pass, typename Body>
void for_each_group(const Pass& pass, const Sizes& sizes, const Body& body) {
  if (pass.hidden_keys.defined()) {
    require_shape("attention", "hidden_keys", pass.hidden_keys.shape(), {sizes.batch, sizes.key_rows});
  }
  require_shape("attention", "out", pass.out.shape(), sizes.out());
  require_shape("attention", "log_sum_exp", pass.log_sum_exp.shape(), {sizes.batch, sizes.heads, sizes.queries});
  const double scale = pass.options.scale == 0 ? 1 / std::sqrt(static_cast<double>(sizes.size)) : pass.options.scale;
  const std::int64_t elements = attention_kernels().of<T>().workspace(sizes.queries, sizes.keys, sizes.size);
  const std::int64_t work = sizes.queries * sizes.keys * sizes.size * sizes.group();
  const Tensor<T, Cpu> workspaces({omp_get_max_threads(), elements});
  parallel_ranges(sizes.batch * sizes.kv_heads, 1, (1 << 18) / work, [&](std::int64_t begin, std::int64_t end) {
    T* workspace = workspaces.data() + omp_get_thread_num() * elements;
    for (std::int64_t index = begin; index < end; ++index) {
      const std::int64_t sequence = index / sizes.kv_heads;
      const std::int64_t kv_head = index % sizes.kv_heads;
      const auto [q, k, v] = parts_of(pass.q, pass.kv, sizes, sequence, kv_head);
      const AttentionHead<T> head{
          .q = q,
          .k = k,
          .v = v,
          .q_stride = sizes.q_stride,
          .kv_stride = sizes.kv_stride,
          .queries = sizes.queries,
          .keys = sizes.keys,
          .size = sizes.size,
          .group = sizes.group(),
          .scale = static_cast<T>(scale),
          .causal = pass.options.causal,
          .hidden = pass.hidden_keys.defined() ? pass.hidden_keys.data() + sequence * sizes.key_rows : nullptr};
      body(head, sequence, kv_head, workspace);
    }
  });
}

// Elements of out, and of log_sum_exp, before those of a group.
std::int64_t place_in_out(const Sizes& sizes, std::int64_t sequence, std::int64_t kv_head) {
  return sequence * sizes.queries * sizes.width() + kv_head * sizes.group() * sizes.size;
}
std::int64_t place_in_sums(const Sizes& sizes, std::int64_t sequence, std::int64_t kv_head) {
  return (sequence * sizes.heads + kv_head * sizes.group()) * sizes.queries;
}

}  // namespace

Shape attention_shape(const Shape& q, const Shape& kv_or_empty, const AttentionOptions& options) {
  return sizes_of(q, kv_or_empty, options).out();
}

template <typename T, typename D>
void scaled_dot_product_attention(const AttentionForward<T, D>& pass) {
  const Sizes sizes = sizes_of(pass.q.shape(), pass.kv.shape(), pass.options);
  const auto& kernels = attention_kernels().of<T>();
  for_each_group<T>(pass, sizes, [&](const AttentionHead<T>& head, std::int64_t sequence, std::int64_t kv_head, T* workspace) {
    kernels.forward(head, pass.out.data() + place_in_out(sizes, sequence, kv_head), sizes.width(),
                    pass.log_sum_exp.data() + place_in_sums(sizes, sequence, kv_head), workspace);
  });
}

template <typename T, typename D>
void scaled_dot_product_attention_backward(const AttentionBackward<T, D>& pass) {
  const Sizes sizes = sizes_of(pass.q.shape(), pass.kv.shape(), pass.options);
  require_shape("attention", "dout", pass.dout.shape(), sizes.out());
  require_shape("attention", "dq", pass.dq.shape(), pass.q.shape());
  require_shape("attention", "dkv", pass.dkv.shape(), pass.kv.shape());
  const auto& kernels = attention_kernels().of<T>();
  for_each_group<T>(pass, sizes, [&](const AttentionHead<T>& head, std::int64_t sequence, std::int64_t kv_head, T* workspace) {
    const auto [dq, dk, dv] = parts_of(pass.dq, pass.dkv, sizes, sequence, kv_head);
    const std::int64_t place = place_in_out(sizes, sequence, kv_head);
    kernels.backward(head,
                     {.out = pass.out.data() + place,
                      .dout = pass.dout.data() + place,
                      .out_stride = sizes.width(),
                      .log_sum_exp = pass.log_sum_exp.data() + place_in_sums(sizes, sequence, kv_head),
                      .dq = dq,
                      .dk = dk,
                      .dv = dv},
                     workspace);
  });
}

template void scaled_dot_product_attention(const AttentionForward<float, Cpu>&);
template void scaled_dot_product_attention(const AttentionForward<double, Cpu>&);
template void scaled_dot_product_attention_backward(const AttentionBackward<float, Cpu>&);
template void scaled_dot_product_attention_backward(const AttentionBackward<double, Cpu>&);

}  // namespace trireme::ops
