#include "trireme/ops/scaled_dot_product_attention.hpp"

#include "ops/compare.hpp"
#include "ops/threads.hpp"

using namespace trireme;
using namespace trireme::ops;

namespace {

struct Case {
  std::int64_t batch, queries, keys, heads, kv_heads, size;
  bool causal;
  bool padded;

  Shape q() const { return {batch, queries, heads * size}; }
  Shape kv() const { return {batch, keys, 2 * kv_heads * size}; }
  AttentionOptions options() const {
    return {.heads = static_cast<int>(heads), .kv_heads = static_cast<int>(kv_heads), .causal = causal};
  }
  bool hidden(std::int64_t sequence, std::int64_t key) const { return padded && key % 5 == sequence % 2; }
};

struct Expected {
  Doubles out, dq, dkv;
};

// Whole rows of scores, plain loops.
Expected naive(const Case& c, const Doubles& q, const Doubles& kv, const Doubles& dout) {
  Expected result{Doubles(q.size()), Doubles(q.size()), Doubles(kv.size())};
  const double scale = 1 / std::sqrt(static_cast<double>(c.size));
  for (std::int64_t sequence = 0; sequence < c.batch; ++sequence) {
    for (std::int64_t head = 0; head < c.heads; ++head) {
      const std::int64_t kv_head = head / (c.heads / c.kv_heads);
      const auto k_at = [&](std::int64_t key, std::int64_t j) {
        return static_cast<std::size_t>(((sequence * c.keys + key) * 2 * c.kv_heads + kv_head) * c.size + j);
      };
      const auto v_at = [&](std::int64_t key, std::int64_t j) { return k_at(key, j + c.kv_heads * c.size); };
      for (std::int64_t query = 0; query < c.queries; ++query) {
        const auto at = [&](std::int64_t j) {
          return static_cast<std::size_t>(((sequence * c.queries + query) * c.heads + head) * c.size + j);
        };
        Doubles p(static_cast<std::size_t>(c.keys)), dp(p.size());
        double sum = 0, delta = 0;
        for (std::int64_t key = 0; key < c.keys; ++key) {
          if (c.hidden(sequence, key) || (c.causal && key > query + c.keys - c.queries)) continue;
          double score = 0;
          for (std::int64_t j = 0; j < c.size; ++j) score += q[at(j)] * kv[k_at(key, j)];
          sum += p[static_cast<std::size_t>(key)] = std::exp(scale * score);
        }
        if (sum == 0) continue;
        for (std::int64_t key = 0; key < c.keys; ++key) {
          const auto index = static_cast<std::size_t>(key);
          p[index] /= sum;
          for (std::int64_t j = 0; j < c.size; ++j) {
            result.out[at(j)] += p[index] * kv[v_at(key, j)];
            result.dkv[v_at(key, j)] += p[index] * dout[at(j)];
            dp[index] += dout[at(j)] * kv[v_at(key, j)];
          }
          delta += p[index] * dp[index];
        }
        for (std::int64_t key = 0; key < c.keys; ++key) {
          const auto index = static_cast<std::size_t>(key);
          const double ds = scale * p[index] * (dp[index] - delta);
          for (std::int64_t j = 0; j < c.size; ++j) {
            result.dq[at(j)] += ds * kv[k_at(key, j)];
            result.dkv[k_at(key, j)] += ds * q[at(j)];
          }
        }
      }
    }
  }
  return result;
}

}  // namespace

TEMPLATE_TEST_CASE("attention to other sequences, padded, causal and with shared keys", "", float, double) {
  using T = TestType;
  for (const Case& c :
       {Case{2, 5, 9, 2, 2, 16, false, false}, Case{1, 100, 411, 2, 1, 20, false, true}, Case{2, 50, 57, 4, 2, 8, true, false},
        Case{1, 61, 800, 3, 1, 64, true, true}, Case{3, 12, 12, 2, 2, 8, true, true}, Case{2, 1, 70, 6, 2, 24, true, true},
        Case{1, 97, 398, 2, 2, 16, true, false}}) {
    CAPTURE(c.queries, c.keys, c.heads, c.kv_heads, c.size, c.causal, c.padded);
    const auto q = random_tensor<T>(c.q(), 1);
    const auto kv = random_tensor<T>(c.kv(), 2);
    const auto dout = random_tensor<T>(c.q(), 3);
    Tensor<std::int32_t> hidden;
    if (c.padded) {
      hidden = Tensor<std::int32_t>({c.batch, c.keys});
      for (std::int64_t i = 0; i < hidden.numel(); ++i) hidden.data()[i] = c.hidden(i / c.keys, i % c.keys) ? 1 : 0;
    }
    constexpr T nan = std::numeric_limits<T>::quiet_NaN();
    const Tensor<T> out(c.q()), log_sum_exp({c.batch, c.heads, c.queries});
    const auto dq = Tensor<T>::full(c.q(), nan), dkv = Tensor<T>::full(c.kv(), nan);
    scaled_dot_product_attention<T, Cpu>(
        {.options = c.options(), .q = q, .kv = kv, .hidden_keys = hidden, .out = out, .log_sum_exp = log_sum_exp});
    scaled_dot_product_attention_backward<T, Cpu>({.options = c.options(),
                                                   .q = q,
                                                   .kv = kv,
                                                   .hidden_keys = hidden,
                                                   .out = out,
                                                   .log_sum_exp = log_sum_exp,
                                                   .dout = dout,
                                                   .dq = dq,
                                                   .dkv = dkv});
    const Expected expected = naive(c, as_doubles(q), as_doubles(kv), as_doubles(dout));
    require_close(out, expected.out, tolerance<T>(1e-5));
    require_close(dq, expected.dq, tolerance<T>(2e-5));
    require_close(dkv, expected.dkv, tolerance<T>(4e-5));
  }
}

TEST_CASE("a cache may be larger than the keys in use") {
  const auto q = random_tensor<float>({1, 1, 8}, 1);
  const auto kv = random_tensor<float>({1, 9, 16}, 2);
  Tensor<float> out(q.shape()), of_part(q.shape()), log_sum_exp({1, 2, 1});
  scaled_dot_product_attention<float, Cpu>(
      {.options = {.heads = 2, .keys = 4}, .q = q, .kv = kv, .out = out, .log_sum_exp = log_sum_exp});
  scaled_dot_product_attention<float, Cpu>({.options = {.heads = 2},
                                            .q = q,
                                            .kv = kv.reshape({9, 16}).narrow(0, 4).reshape({1, 4, 16}),
                                            .out = of_part,
                                            .log_sum_exp = log_sum_exp});
  require_identical(out, of_part);
}

TEST_CASE("attention says which shape does not fit") {
  const Tensor<float> q({2, 4, 6}), kv({2, 3, 12}), log_sum_exp({2, 2, 4});
  const auto run = [&](const AttentionOptions& options, const Tensor<float>& keys) {
    scaled_dot_product_attention<float, Cpu>({.options = options, .q = q, .kv = keys, .out = q, .log_sum_exp = log_sum_exp});
  };
  CHECK_THROWS_WITH(run({.heads = 2, .causal = true}, kv), "attention: causal, but 4 queries are more than 3 keys");
  CHECK_THROWS_WITH(run({.heads = 3, .kv_heads = 2}, kv), "attention: 3 heads cannot share 2 heads of keys and values");
  CHECK_THROWS_WITH(run({.heads = 2}, q), "attention: kv has shape [2, 4, 6], but q of shape [2, 4, 6] needs [2, keys, 12]");
}
