#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>

#include "trireme/autograd/operations/array.hpp"
#include "trireme/autograd/operations/elementwise.hpp"
#include "trireme/autograd/operations/matmul.hpp"
#include "trireme/autograd/operations/pointwise.hpp"
#include "trireme/autograd/operations/reduce.hpp"
#include "trireme/core/export.hpp"
#include "trireme/ops/array/create.hpp"

namespace trireme TRIREME_EXPORT {

// The keys that a query sees, and a bias on their scores. A query sees a key if every member that is set allows the key. bias
// and mask are broadcast to [batch, heads, queries, keys].
template <typename T, typename D = Cpu>
struct AttentionMask {
  Variable<Accumulate<T>, D> bias = {};           // added before the softmax, with a gradient; may be undefined
  Tensor<bool, D> mask = {};                      // true where a key is seen; may be undefined
  Tensor<std::int32_t, D> key_padding_mask = {};  // [batch, keys], not 0 where a key is padding; may be undefined
  bool causal = false;                            // query i sees the keys up to i + keys - queries
  // Above 0: query i sees only keys at less than this distance from i + keys - queries (Beltagy et al. 2020, arXiv 2004.05150)
  std::int64_t window = 0;

  bool empty() const {
    return !bias.value().defined() && !mask.defined() && !key_padding_mask.defined() && !causal && window == 0;
  }
};

struct MaskedAttentionOptions {
  double scale = 0;              // factor on the products of queries and keys; 0: 1 / sqrt(size)
  double dropout = 0;            // probability for the softmax's result, see dropout()
  std::string_view stream = {};  // names the dropout's random numbers
  // Set these if q holds only some of `all_heads` heads, from first_head on: dropout then drops the same elements as with all
  // heads. all_heads = 0: q holds all heads.
  std::int64_t all_heads = 0;
  std::int64_t first_head = 0;
};

namespace detail {

// true where `causal` and `window` let a query see a key.
template <typename D>
Tensor<bool, D> band(std::int64_t queries, std::int64_t keys, bool causal, std::int64_t window) {
  const auto first = static_cast<double>(keys - queries);
  const auto place = arange<std::int32_t, D>(first, first + static_cast<double>(queries)).reshape({queries, 1});
  const auto distance = subtract(place, arange<std::int32_t, D>(static_cast<double>(keys)));
  Tensor<bool, D> seen = ge(distance, causal ? 0 : -static_cast<std::int32_t>(keys + queries));
  if (window == 0) return seen;
  return logical_and(
      seen, logical_and(lt(distance, static_cast<std::int32_t>(window)), gt(distance, static_cast<std::int32_t>(-window))));
}

// dropout() of the attention weights [batch, heads, queries, keys]. If `shares` has only some of the heads, drop_shares() draws
// the random numbers of all heads.
template <typename A, typename D>
Variable<A, D> drop_shares(const Variable<A, D>& shares, const MaskedAttentionOptions& options) {
  const Shape& shape = shares.shape();
  const std::int64_t all = options.all_heads == 0 ? shape[1] : options.all_heads;
  require(options.first_head >= 0 && options.first_head <= all - shape[1],
          "masked_attention: {} heads from head {} on do not lie in {} heads", shape[1], options.first_head, all);
  if (options.dropout == 0 || Tape::current() == nullptr) return shares;
  if (all == shape[1]) return dropout(shares, options.dropout, options.stream);
  const Variable<A, D> ones(Tensor<A, D>::full({shape[0], all, shape[2], shape[3]}, A{1}));
  return multiply(shares, narrow(dropout(ones, options.dropout, options.stream), 1, options.first_head, shape[1]));
}

}  // namespace detail

// softmax(scale * q k^T + bias) v, as torch.nn.functional.scaled_dot_product_attention: q[batch, heads, queries, size],
// k[batch, kv_heads, keys, size], v[batch, kv_heads, keys, value_size] -> [batch, heads, queries, value_size]. Each group of
// heads / kv_heads neighbouring heads shares keys and values. A query that sees no key gets zeros. If the bias or the products
// make all scores of a query -infinity, the query gets NaN; PyTorch returns zeros in some of these cases. masked_attention()
// keeps whole matrices [queries, keys] in memory. scaled_dot_product_attention() is several times as fast, but supports fewer
// masks and no bias or dropout.
template <typename T, typename D>
Variable<T, D> masked_attention(const Variable<T, D>& q, const Variable<T, D>& k, const Variable<T, D>& v,
                                const AttentionMask<T, D>& mask = {}, const MaskedAttentionOptions& options = {}) {
  using A = Accumulate<T>;
  require_operands("masked_attention", q, k, v);
  const Shape &of_q = q.shape(), &of_k = k.shape(), &of_v = v.shape();
  require(of_q.size() == 4 && of_k.size() == 4 && of_v.size() == 4 && of_k[0] == of_q[0] && of_v[0] == of_q[0] &&
              of_k[3] == of_q[3] && of_v[1] == of_k[1] && of_v[2] == of_k[2],
          "masked_attention: q {}, k {} and v {} do not fit: they need [batch, heads, time, size]", of_q, of_k, of_v);
  require(of_k[1] > 0 && of_q[1] % of_k[1] == 0, "masked_attention: {} heads of keys and values do not divide {} heads",
          of_k[1], of_q[1]);
  require(mask.window >= 0, "masked_attention: the window is {}, but must not be below 0", mask.window);
  const std::int64_t batch = of_q[0], heads = of_q[1], queries = of_q[2], keys = of_k[2];
  const std::int64_t sharing = heads / of_k[1];  // heads whose queries are rows of one product
  const double factor = options.scale == 0 ? 1 / std::sqrt(static_cast<double>(of_q[3])) : options.scale;

  const auto products = matmul(reshape(q, {batch, of_k[1], sharing * queries, of_q[3]}), transpose(k, 2, 3));
  Variable<A, D> scores = scale(cast<A>(reshape(products, {batch, heads, queries, keys})), static_cast<A>(factor));
  if (mask.bias.value().defined()) scores = add(scores, mask.bias);
  require(scores.shape() == Shape{batch, heads, queries, keys},
          "masked_attention: a bias of shape {} can't be broadcast to [{}, {}, {}, {}]", mask.bias.shape(), batch, heads,
          queries, keys);

  Tensor<bool, D> seen;
  const auto see = [&](const Tensor<bool, D>& also) { seen = seen.defined() ? logical_and(seen, also) : also; };
  if (mask.mask.defined()) see(mask.mask);
  if (mask.causal || mask.window > 0) see(detail::band<D>(queries, keys, mask.causal, mask.window));
  if (mask.key_padding_mask.defined()) {
    require(mask.key_padding_mask.shape() == Shape{batch, keys},
            "masked_attention: key_padding_mask has shape {}, but needs {}", mask.key_padding_mask.shape(), Shape{batch, keys});
    see(eq(mask.key_padding_mask.reshape({batch, 1, 1, keys}), 0));
  }
  // The softmax of a row with only -infinity is NaN; where() below replaces the NaN in both passes.
  constexpr double never = -std::numeric_limits<double>::infinity();
  if (seen.defined()) scores = where(seen, scores, never);
  require(scores.shape() == Shape{batch, heads, queries, keys},
          "masked_attention: a mask of shape {} can't be broadcast to [{}, {}, {}, {}]",
          seen.defined() ? seen.shape() : Shape{}, batch, heads, queries, keys);
  Variable<A, D> shares = softmax(scores);
  if (seen.defined()) shares = where(seen, shares, 0);
  const auto rows = cast<T>(reshape(detail::drop_shares(shares, options), {batch, of_k[1], sharing * queries, keys}));
  return reshape(matmul(rows, v), {batch, heads, queries, of_v[3]});
}

// [batch, time, heads * size] -> [batch, heads, time, size], and back.
template <typename T, typename D>
Variable<T, D> split_heads(const Variable<T, D>& x, std::int64_t heads) {
  require_operands("split_heads", x);
  require(x.shape().size() == 3 && heads > 0 && x.shape()[2] % heads == 0,
          "split_heads: x {} needs [batch, time, width] with a width divisible by {} heads", x.shape(), heads);
  return permute(reshape(x, {x.shape()[0], x.shape()[1], heads, x.shape()[2] / heads}), {0, 2, 1, 3});
}
template <typename T, typename D>
Variable<T, D> join_heads(const Variable<T, D>& x) {
  require_operands("join_heads", x);
  require(x.shape().size() == 4, "join_heads: x {} needs [batch, heads, time, size]", x.shape());
  return reshape(permute(x, {0, 2, 1, 3}), {x.shape()[0], x.shape()[2], x.shape()[1] * x.shape()[3]});
}

}  // namespace trireme
