#include "trireme/ops/attention/attention.hpp"

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "ops/attention/attention_kernels.hpp"
#include "ops/attention/attention_on.hpp"
#include "ops/base/parallel.hpp"
#include "ops/elementwise/floats.hpp"
#include "precision/instantiate.hpp"

namespace trireme::ops {
namespace {

// Rows of `width` elements, `stride` apart.
template <typename T>
struct Matrix {
  T* data;
  std::int64_t rows;
  std::int64_t width;
  std::int64_t stride;

  std::int64_t copied_elements() const { return is_half<T> ? whole_lines(rows * width) : 0; }
  static std::int64_t whole_lines(std::int64_t elements) { return (elements + 15) / 16 * 16; }
};

// The matrix that kernels use: the caller's own, or for half types floats from the workspace.
template <typename T>
Matrix<Accumulate<T>> floats_for(const Matrix<T>& matrix, Accumulate<T>*& workspace) {
  if constexpr (is_half<T>) {
    return {std::exchange(workspace, workspace + matrix.copied_elements()), matrix.rows, matrix.width, matrix.width};
  } else {
    return matrix;
  }
}
template <typename T>
Matrix<Accumulate<T>> read(const Matrix<T>& matrix, Accumulate<T>*& workspace) {
  const auto floats = floats_for(matrix, workspace);
  if constexpr (is_half<T>) {
    for (std::int64_t row = 0; row < matrix.rows; ++row) {
      widen(matrix.data + row * matrix.stride, floats.data + row * floats.stride, matrix.width);
    }
  }
  return floats;
}
template <typename T>
void write(const Matrix<Accumulate<T>>& floats, const Matrix<T>& matrix) {
  if constexpr (is_half<T>) {
    for (std::int64_t row = 0; row < matrix.rows; ++row) {
      narrow(floats.data + row * floats.stride, matrix.data + row * matrix.stride, matrix.width);
    }
  }
}

// The heads of a sequence that share keys and values.
struct GroupPlace {
  std::int64_t sequence;
  std::int64_t kv_head;
};

// The queries, keys and values of a group, in the inputs or in their gradients.
template <typename T>
struct Parts {
  Matrix<T> q;
  Matrix<T> k;
  Matrix<T> v;
};
template <typename T>
Parts<T> parts_of(const Tensor<T, Cpu>& q, const Tensor<T, Cpu>& kv, const AttentionSizes& sizes, const GroupPlace& place) {
  T* const queries = q.data() + place.sequence * sizes.queries * sizes.q_stride;
  T* const keys = sizes.packed ? queries + sizes.width() : kv.data() + place.sequence * sizes.key_rows * sizes.kv_stride;
  T* const k = keys + place.kv_head * sizes.size;
  T* const v = keys + sizes.kv_heads * sizes.size + place.kv_head * sizes.value_size;
  const std::int64_t width = sizes.group() * sizes.size;
  return {.q = {queries + place.kv_head * width, sizes.queries, width, sizes.q_stride},
          .k = {k, sizes.keys, sizes.size, sizes.kv_stride},
          .v = {v, sizes.keys, sizes.value_size, sizes.kv_stride}};
}

// The part of a group in the output or in its gradient.
template <typename T>
Matrix<T> part_of_out(const Tensor<T, Cpu>& out, const AttentionSizes& sizes, const GroupPlace& place) {
  const std::int64_t width = sizes.group() * sizes.value_size;
  return {out.data() + place.sequence * sizes.queries * sizes.out_width() + place.kv_head * width, sizes.queries, width,
          sizes.out_width()};
}
template <typename A>
AttentionSums<A> part_of_sums(A* exponentials, const AttentionSizes& sizes, const GroupPlace& place) {
  const AttentionSums<A> all{exponentials, exponentials + sizes.batch * sizes.heads * sizes.queries};
  return all.from((place.sequence * sizes.heads + place.kv_head * sizes.group()) * sizes.queries);
}

// Calls body(head, place, workspace) for every group of heads of every sequence, on the threads of this rank. The workspace is
// for the kernels and, for half types, for floats of the inputs, with `gradients` of their gradients too, and of `outputs`
// tensors like the output.
template <typename T, typename Pass, typename Body>
void for_each_group(const Pass& pass, const AttentionSizes& sizes, bool gradients, std::int64_t outputs, const Body& body) {
  using A = Accumulate<T>;
  const double scale = attention_scale(pass.options, sizes);
  const auto first = parts_of(pass.q, pass.kv, sizes, {0, 0});
  const std::int64_t inputs = first.q.copied_elements() + first.k.copied_elements() + first.v.copied_elements();
  const std::int64_t elements = (gradients ? 2 : 1) * inputs +
                                outputs * part_of_out(pass.out, sizes, {0, 0}).copied_elements() +
                                attention_kernels().of<A>().workspace(sizes.queries, sizes.keys, sizes.size, sizes.value_size);
  const std::int64_t work = sizes.queries * sizes.keys * (sizes.size + sizes.value_size) / 2 * sizes.group();
  const Tensor<A, Cpu> workspaces({most_parts(), elements});
  parallel_ranges(
      sizes.batch * sizes.kv_heads, 1, (1 << 18) / work, [&](std::int64_t begin, std::int64_t end, std::int64_t part) {
        for (std::int64_t index = begin; index < end; ++index) {
          A* workspace = workspaces.data() + part * elements;
          const GroupPlace place{index / sizes.kv_heads, index % sizes.kv_heads};
          const auto parts = parts_of(pass.q, pass.kv, sizes, place);
          const auto q = read(parts.q, workspace);
          const auto k = read(parts.k, workspace);
          const auto v = read(parts.v, workspace);
          const AttentionHead<A> head{
              .q = q.data,
              .k = k.data,
              .v = v.data,
              .q_stride = q.stride,
              .k_stride = k.stride,
              .v_stride = v.stride,
              .queries = sizes.queries,
              .keys = sizes.keys,
              .size = sizes.size,
              .value_size = sizes.value_size,
              .group = sizes.group(),
              .scale = static_cast<A>(scale),
              .causal = pass.options.causal,
              .hidden =
                  pass.key_padding_mask.defined() ? pass.key_padding_mask.data() + place.sequence * sizes.key_rows : nullptr,
              .first_keys = pass.first_keys.defined() ? pass.first_keys.data() + place.sequence * sizes.queries : nullptr,
              .window = pass.options.window};
          body(head, place, workspace);
        }
      });
}

// Kernels skip keys by the first query of a block, so first_keys must not decrease.
void check_first_keys(const Tensor<std::int32_t, Cpu>& first_keys) {
  if (!first_keys.defined()) return;
  const std::int64_t queries = first_keys.dim(1);
  for (std::int64_t i = 0; i < first_keys.numel(); ++i) {
    const std::int64_t query = i % queries;
    const std::int32_t before = query == 0 ? 0 : first_keys.data()[i - 1];
    require(first_keys.data()[i] >= before, "attention: first_keys decrease from {} to {} at query {} of sequence {}", before,
            first_keys.data()[i], query, i / queries);
  }
}

}  // namespace

AttentionSizes attention_sizes(const Shape& q, const Shape& kv_or_empty, const AttentionOptions& options) {
  const bool packed = kv_or_empty.size() == 0;
  const std::int64_t heads = options.heads;
  const std::int64_t kv_heads = options.kv_heads == 0 ? heads : options.kv_heads;
  require(heads > 0 && kv_heads > 0 && heads % kv_heads == 0, "attention: {} heads cannot share {} heads of keys and values",
          heads, kv_heads);
  require(q.size() == 3, "attention: q has shape {}, but needs [batch, time, width]", q);
  require(options.value_size >= 0, "attention: the value size is {}, but must not be below 0", options.value_size);
  require(options.window >= 0, "attention: the window is {}, but must not be below 0", options.window);
  require(options.window == 0 || options.causal, "attention: a window of {} keys is for causal attention", options.window);
  const bool own_value_size = options.value_size > 0;
  const std::int64_t values = packed && own_value_size ? kv_heads * options.value_size : 0;  // apart from the even split
  const std::int64_t parts = !packed ? heads : own_value_size ? heads + kv_heads : heads + 2 * kv_heads;
  require(q[2] > values && (q[2] - values) % parts == 0, "attention: q of shape {} does not split into {} heads{}", q, parts,
          values > 0 ? fmt::format(" and {} values", values) : "");
  const std::int64_t size = (q[2] - values) / parts;
  const std::int64_t value_size = own_value_size ? options.value_size : size;
  const std::int64_t kv_width = kv_heads * (size + value_size);
  if (!packed) {
    require(kv_or_empty.size() == 3 && kv_or_empty[0] == q[0] && kv_or_empty[2] == kv_width,
            "attention: kv has shape {}, but q of shape {} needs [{}, keys, {}]", kv_or_empty, q, q[0], kv_width);
  }
  const std::int64_t key_rows = packed ? q[1] : kv_or_empty[1];
  const std::int64_t keys = options.keys == 0 ? key_rows : options.keys;
  require(keys > 0 && keys <= key_rows && q[1] > 0,
          "attention: {} queries and {} of {} keys, but there must be queries and keys", q[1], keys, key_rows);
  require(!options.causal || keys >= q[1], "attention: causal, but {} queries are more than {} keys", q[1], keys);
  return {.batch = q[0],
          .queries = q[1],
          .keys = keys,
          .key_rows = key_rows,
          .heads = heads,
          .kv_heads = kv_heads,
          .size = size,
          .value_size = value_size,
          .q_stride = q[2],
          .kv_stride = packed ? q[2] : kv_or_empty[2],
          .packed = packed};
}

double attention_scale(const AttentionOptions& options, const AttentionSizes& sizes) {
  return options.scale == 0 ? 1 / std::sqrt(static_cast<double>(sizes.size)) : options.scale;
}

Shape attention_shape(const Shape& q, const Shape& kv_or_empty, const AttentionOptions& options) {
  const AttentionSizes sizes = attention_sizes(q, kv_or_empty, options);
  return {sizes.batch, sizes.queries, sizes.out_width()};
}

template <>
template <typename T>
void Attention<Cpu>::forward(const AttentionForward<T, Cpu>& pass, const AttentionSizes& sizes) {
  using A = Accumulate<T>;
  check_first_keys(pass.first_keys);
  const auto& kernels = attention_kernels().of<A>();
  for_each_group<T>(pass, sizes, false, 1, [&](const AttentionHead<A>& head, const GroupPlace& place, A* workspace) {
    const auto part = part_of_out(pass.out, sizes, place);
    const auto out = floats_for(part, workspace);
    kernels.forward(head, out.data, out.stride, part_of_sums(pass.exponentials.data(), sizes, place), workspace);
    write(out, part);
  });
}

template <>
template <typename T>
void Attention<Cpu>::backward(const AttentionBackward<T, Cpu>& pass, const AttentionSizes& sizes) {
  using A = Accumulate<T>;
  check_first_keys(pass.first_keys);
  const auto& kernels = attention_kernels().of<A>();
  for_each_group<T>(pass, sizes, true, 2, [&](const AttentionHead<A>& head, const GroupPlace& place, A* workspace) {
    const auto out = read(part_of_out(pass.out, sizes, place), workspace);
    const auto dout = read(part_of_out(pass.dout, sizes, place), workspace);
    const auto parts = parts_of(pass.dq, pass.dkv, sizes, place);
    const auto dq = floats_for(parts.q, workspace);
    const auto dk = floats_for(parts.k, workspace);
    const auto dv = floats_for(parts.v, workspace);
    kernels.backward(head,
                     {.out = out.data,
                      .dout = dout.data,
                      .out_stride = out.stride,
                      .sums = part_of_sums<const A>(pass.exponentials.data(), sizes, place),
                      .dq = dq.data,
                      .dk = dk.data,
                      .dv = dv.data},
                     workspace);
    write(dq, parts.q);
    write(dk, parts.k);
    write(dv, parts.v);
  });
}

TRIREME_INSTANTIATE(FLOATS, scaled_dot_product_attention, Cpu)
TRIREME_INSTANTIATE(FLOATS, scaled_dot_product_attention_backward, Cpu)

}  // namespace trireme::ops
