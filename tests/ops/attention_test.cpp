#include "trireme/ops/attention/attention.hpp"

#include <array>

#include "ops/compare.hpp"
#include "ops/threads.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"

using namespace trireme;
using namespace trireme::ops;

namespace {

struct Case {
  std::int64_t batch, queries, keys, heads, kv_heads, size;
  bool causal;
  bool padded;
  std::int64_t value_size = 0;  // 0: that of the queries
  std::int64_t window = 0;
  std::int64_t document = 0;  // above 0: keys lie in documents of 1, so many, 2, twice as many, 3, ... keys

  std::int64_t size_of_values() const { return value_size == 0 ? size : value_size; }
  std::int64_t kv_width() const { return kv_heads * (size + size_of_values()); }
  Shape q() const { return {batch, queries, heads * size}; }
  Shape kv() const { return {batch, keys, kv_width()}; }
  Shape out() const { return {batch, queries, heads * size_of_values()}; }
  AttentionOptions options() const {
    return {.heads = static_cast<int>(heads),
            .kv_heads = static_cast<int>(kv_heads),
            .causal = causal,
            .window = window,
            .value_size = value_size};
  }
  std::int64_t place(std::int64_t query) const { return query + keys - queries; }
  // Sequences begin with different ones.
  std::int64_t start_of_document(std::int64_t sequence, std::int64_t query) const {
    std::int64_t start = 0;
    for (std::int64_t i = sequence; document > 0; ++i) {
      const std::int64_t end = start + (i % 2 == 0 ? i / 2 + 1 : (i + 1) / 2 * document);
      if (end > place(query)) break;
      start = end;
    }
    return start;
  }
  bool passed(std::int64_t sequence, std::int64_t query, std::int64_t key) const {
    return key < start_of_document(sequence, query) || (window > 0 && key <= place(query) - window);
  }
  bool hidden(std::int64_t sequence, std::int64_t key) const { return padded && key % 5 == sequence % 2; }
};

struct Expected {
  Doubles out, log_sum_exp, dq, dkv;
};

// Whole rows of scores, plain loops.
Expected naive(const Case& c, const Doubles& q, const Doubles& kv, const Doubles& dout) {
  Expected result{Doubles(dout.size()), Doubles(static_cast<std::size_t>(c.batch * c.heads * c.queries)), Doubles(q.size()),
                  Doubles(kv.size())};
  const double scale = 1 / std::sqrt(static_cast<double>(c.size));
  for (std::int64_t sequence = 0; sequence < c.batch; ++sequence) {
    for (std::int64_t head = 0; head < c.heads; ++head) {
      const std::int64_t kv_head = head / (c.heads / c.kv_heads);
      const auto k_at = [&](std::int64_t key, std::int64_t j) {
        return static_cast<std::size_t>((sequence * c.keys + key) * c.kv_width() + kv_head * c.size + j);
      };
      const std::int64_t value_size = c.size_of_values();
      const auto v_at = [&](std::int64_t key, std::int64_t j) {
        return static_cast<std::size_t>((sequence * c.keys + key) * c.kv_width() + c.kv_heads * c.size + kv_head * value_size +
                                        j);
      };
      for (std::int64_t query = 0; query < c.queries; ++query) {
        const auto at = [&](std::int64_t j) {
          return static_cast<std::size_t>(((sequence * c.queries + query) * c.heads + head) * c.size + j);
        };
        const auto out_at = [&](std::int64_t j) {
          return static_cast<std::size_t>(((sequence * c.queries + query) * c.heads + head) * value_size + j);
        };
        Doubles p(static_cast<std::size_t>(c.keys)), dp(p.size());
        double sum = 0, delta = 0;
        for (std::int64_t key = 0; key < c.keys; ++key) {
          if (c.hidden(sequence, key) || (c.causal && key > c.place(query)) || c.passed(sequence, query, key)) continue;
          double score = 0;
          for (std::int64_t j = 0; j < c.size; ++j) score += q[at(j)] * kv[k_at(key, j)];
          sum += p[static_cast<std::size_t>(key)] = std::exp(scale * score);
        }
        if (sum == 0) continue;
        result.log_sum_exp[static_cast<std::size_t>((sequence * c.heads + head) * c.queries + query)] = std::log(sum);
        for (std::int64_t key = 0; key < c.keys; ++key) {
          const auto index = static_cast<std::size_t>(key);
          p[index] /= sum;
          for (std::int64_t j = 0; j < value_size; ++j) {
            result.out[out_at(j)] += p[index] * kv[v_at(key, j)];
            result.dkv[v_at(key, j)] += p[index] * dout[out_at(j)];
            dp[index] += dout[out_at(j)] * kv[v_at(key, j)];
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

Tensor<std::int32_t> key_padding_mask(const Case& c) {
  if (!c.padded) return {};
  Tensor<std::int32_t> hidden({c.batch, c.keys});
  for (std::int64_t i = 0; i < hidden.numel(); ++i) hidden.data()[i] = c.hidden(i / c.keys, i % c.keys) ? 1 : 0;
  return hidden;
}

Tensor<std::int32_t> first_keys(const Case& c) {
  if (c.document == 0) return {};
  Tensor<std::int32_t> first({c.batch, c.queries});
  for (std::int64_t i = 0; i < first.numel(); ++i) {
    first.data()[i] = static_cast<std::int32_t>(c.start_of_document(i / c.queries, i % c.queries));
  }
  return first;
}

template <typename T>
struct Results {
  Tensor<T> out, exponentials, dq, dkv;
};

// kv undefined: q is packed.
template <typename T>
Results<T> run(const Case& c, const Tensor<T>& q, const Tensor<T>& kv, const Tensor<T>& dout) {
  constexpr T nan = std::numeric_limits<T>::quiet_NaN();
  const Results<T> results{.out = Tensor<T>(c.out()),
                           .exponentials = Tensor<T>({2, c.batch, c.heads, c.queries}),
                           .dq = Tensor<T>::full(q.shape(), nan),
                           .dkv = kv.defined() ? Tensor<T>::full(kv.shape(), nan) : Tensor<T>()};
  scaled_dot_product_attention<T, Cpu>({.options = c.options(),
                                        .q = q,
                                        .kv = kv,
                                        .key_padding_mask = key_padding_mask(c),
                                        .first_keys = first_keys(c),
                                        .out = results.out,
                                        .exponentials = results.exponentials});
  scaled_dot_product_attention_backward<T, Cpu>({.options = c.options(),
                                                 .q = q,
                                                 .kv = kv,
                                                 .key_padding_mask = key_padding_mask(c),
                                                 .first_keys = first_keys(c),
                                                 .out = results.out,
                                                 .exponentials = results.exponentials,
                                                 .dout = dout,
                                                 .dq = results.dq,
                                                 .dkv = results.dkv});
  return results;
}

// The columns [first, first + count) of a matrix.
template <typename T>
Tensor<T> columns(const Tensor<T>& x, std::int64_t first, std::int64_t count) {
  const std::int64_t width = x.shape().back();
  Tensor<T> part({x.dim(0), x.dim(1), count});
  for (std::int64_t row = 0; row < x.shape().rows(); ++row) {
    std::copy_n(x.data() + row * width + first, count, part.data() + row * count);
  }
  return part;
}

template <typename T>
void compare_with_naive(const Case& c) {
  const auto q = random_tensor<T>(c.q(), 1);
  const auto kv = random_tensor<T>(c.kv(), 2);
  const auto dout = random_tensor<T>(c.out(), 3);
  const auto results = run(c, q, kv, dout);
  const Expected expected = naive(c, as_doubles(q), as_doubles(kv), as_doubles(dout));
  require_close(results.out, expected.out, tolerance<T>(1e-5));
  require_close(log_sums(results.exponentials), expected.log_sum_exp, tolerance<T>(1e-5));
  require_close(results.dq, expected.dq, tolerance<T>(2e-5));
  require_close(results.dkv, expected.dkv, tolerance<T>(4e-5));
}

}  // namespace

TEMPLATE_TEST_CASE("attention to other sequences, padded, causal and with shared keys", "", float, double) {
  using T = TestType;
  for (const Case& c :
       {Case{2, 5, 9, 2, 2, 16, false, false}, Case{1, 100, 411, 2, 1, 20, false, true}, Case{2, 50, 57, 4, 2, 8, true, false},
        Case{1, 61, 800, 3, 1, 64, true, true}, Case{3, 12, 12, 2, 2, 8, true, true}, Case{2, 1, 70, 6, 2, 24, true, true},
        Case{1, 97, 398, 2, 2, 16, true, false}}) {
    CAPTURE(c.queries, c.keys, c.heads, c.kv_heads, c.size, c.causal, c.padded);
    compare_with_naive<T>(c);
  }
}

TEMPLATE_TEST_CASE("attention to values of another size than the queries'", "", float, double) {
  using T = TestType;
  for (const Case& c : {Case{2, 5, 9, 2, 2, 16, false, false, 8}, Case{1, 100, 411, 2, 1, 20, false, true, 33},
                        Case{2, 50, 57, 4, 2, 8, true, false, 40}, Case{1, 61, 800, 3, 1, 64, true, true, 5},
                        Case{2, 1, 70, 6, 2, 24, true, true, 7}, Case{1, 97, 398, 2, 2, 7, true, false, 16},
                        Case{2, 40, 13, 2, 1, 6, false, false, 1}}) {
    CAPTURE(c.queries, c.keys, c.heads, c.kv_heads, c.size, c.value_size, c.causal, c.padded);
    compare_with_naive<T>(c);
  }
  const Case c{2, 11, 11, 4, 2, 6, true, false, 10};
  const std::int64_t width = c.heads * c.size;
  const auto qkv = random_tensor<T>({c.batch, c.queries, width + c.kv_width()}, 1);
  const auto dout = random_tensor<T>(c.out(), 2);
  const auto results = run(c, qkv, {}, dout);
  const Expected expected =
      naive(c, as_doubles(columns(qkv, 0, width)), as_doubles(columns(qkv, width, c.kv_width())), as_doubles(dout));
  require_close(results.out, expected.out, tolerance<T>(1e-5));
  require_close(columns(results.dq, 0, width), expected.dq, tolerance<T>(2e-5));
  require_close(columns(results.dq, width, c.kv_width()), expected.dkv, tolerance<T>(2e-5));
}

TEMPLATE_TEST_CASE("attention inside documents and windows", "", float, double) {
  using T = TestType;
  // batch, queries, keys, heads, kv heads, size, causal, padded, value size, window, document
  for (const Case& c :
       {Case{2, 5, 5, 2, 2, 16, true, false, 0, 0, 2}, Case{3, 100, 100, 2, 1, 20, true, false, 0, 0, 9},
        Case{2, 900, 900, 2, 2, 8, true, false, 0, 0, 150}, Case{1, 850, 850, 1, 1, 16, true, false, 0, 0, 420},
        Case{2, 61, 800, 3, 1, 64, true, true, 0, 0, 33}, Case{2, 57, 57, 4, 2, 7, true, true, 13, 0, 5},
        Case{2, 50, 57, 4, 2, 8, false, false, 0, 0, 11}, Case{2, 1, 70, 6, 2, 24, true, true, 0, 0, 8},
        Case{2, 1, 900, 2, 1, 8, true, false, 0, 30, 0}, Case{1, 1, 1, 1, 1, 1, true, false, 0, 1, 1},
        Case{1, 13, 13, 2, 1, 8, true, false, 0, 1, 0}, Case{2, 100, 100, 4, 2, 16, true, false, 0, 7, 0},
        Case{1, 900, 900, 2, 1, 8, true, false, 0, 48, 0}, Case{1, 800, 1000, 2, 1, 8, true, true, 5, 400, 0},
        Case{2, 100, 100, 2, 2, 16, true, false, 0, 1000, 0}, Case{2, 500, 500, 2, 1, 8, true, false, 0, 20, 35}}) {
    CAPTURE(c.batch, c.queries, c.keys, c.heads, c.kv_heads, c.size, c.causal, c.padded, c.value_size, c.window, c.document);
    compare_with_naive<T>(c);
  }
}

TEMPLATE_TEST_CASE("attention of half types to values of another size", "", bfloat16, float16) {
  using T = TestType;
  const Case c{2, 50, 57, 4, 2, 8, true, true, 20};
  const auto q = random_tensor<T>(c.q(), 1);
  const auto kv = random_tensor<T>(c.kv(), 2);
  const auto dout = random_tensor<T>(c.out(), 3);
  const Tensor<T> out(c.out()), dq(c.q()), dkv(c.kv());
  const Tensor<float> exponentials({2, c.batch, c.heads, c.queries});
  const auto options = c.options();
  scaled_dot_product_attention<T, Cpu>({.options = options,
                                        .q = q,
                                        .kv = kv,
                                        .key_padding_mask = key_padding_mask(c),
                                        .out = out,
                                        .exponentials = exponentials});
  const Expected expected = naive(c, as_doubles(q), as_doubles(kv), as_doubles(dout));
  require_close(out, expected.out, 0.03);
  scaled_dot_product_attention_backward<T, Cpu>({.options = options,
                                                 .q = q,
                                                 .kv = kv,
                                                 .key_padding_mask = key_padding_mask(c),
                                                 .out = out,
                                                 .exponentials = exponentials,
                                                 .dout = dout,
                                                 .dq = dq,
                                                 .dkv = dkv});
  require_close(dq, expected.dq, 0.05);
  require_close(dkv, expected.dkv, 0.05);
}

TEMPLATE_TEST_CASE("packed self-attention", "", float, double) {
  using T = TestType;
  for (const auto& [batch, time, heads, kv_heads, size] : {std::array<std::int64_t, 5>{1, 1, 1, 1, 1},
                                                           {2, 5, 3, 3, 8},
                                                           {1, 48, 1, 1, 64},
                                                           {2, 49, 4, 2, 16},
                                                           {1, 97, 2, 2, 20},
                                                           {1, 130, 1, 1, 33},
                                                           {1, 256, 2, 2, 64},
                                                           {1, 401, 1, 1, 80},
                                                           {1, 900, 1, 1, 24}}) {
    const Case c{batch, time, time, heads, kv_heads, size, time % 2 == 1 || time == 256, false};
    CAPTURE(c.batch, c.queries, c.heads, c.kv_heads, c.size, c.causal);
    const std::int64_t width = heads * size;
    const auto qkv = random_tensor<T>({batch, time, width + 2 * kv_heads * size}, 1);
    const auto dout = random_tensor<T>(c.q(), 2);
    const auto results = run(c, qkv, {}, dout);
    const Expected expected =
        naive(c, as_doubles(columns(qkv, 0, width)), as_doubles(columns(qkv, width, 2 * kv_heads * size)), as_doubles(dout));
    require_close(results.out, expected.out, tolerance<T>(1e-5));
    require_close(log_sums(results.exponentials), expected.log_sum_exp, tolerance<T>(1e-5));
    require_close(columns(results.dq, 0, width), expected.dq, tolerance<T>(2e-5));
    require_close(columns(results.dq, width, 2 * kv_heads * size), expected.dkv, tolerance<T>(2e-5));
  }
}

TEST_CASE("attention of large scores does not overflow") {
  const Case c{1, 70, 70, 1, 1, 16, true, false};
  const auto results = run(c, random_tensor<float>({1, 70, 48}, 3, 30), {}, random_tensor<float>({1, 70, 16}, 4));
  for (const float element : results.out.span()) REQUIRE(std::isfinite(element));
  for (const float element : results.dq.span()) REQUIRE(std::isfinite(element));
}

// A query of `large` and keys beside 1: the scores are large + 0, 1, 2, ..., which float holds.
TEST_CASE("attention of large scores is as exact as of small ones, forward and backward") {
  const Case c{1, 3, 5, 1, 1, 1, false, false};
  const auto kv_of = [&](float first, float step) {
    auto kv = random_tensor<float>(c.kv(), 2);
    for (std::int64_t key = 0; key < c.keys; ++key) kv.at(0, key, 0) = first + step * static_cast<float>(key);
    return kv;
  };
  const auto dout = random_tensor<float>(c.out(), 3);
  const auto small = run(c, Tensor<float>::full(c.q(), 1), kv_of(0, 1), dout);
  constexpr float large = 0x1p20F;
  const auto beside = run(c, Tensor<float>::full(c.q(), large), kv_of(1, 1 / large), dout);
  require_close(beside.out, as_doubles(small.out), 1e-6);
  for (std::int64_t key = 0; key < c.keys; ++key) {
    CHECK(beside.dkv.at(0, key, 0) / large == Approx(small.dkv.at(0, key, 0)).margin(1e-6));
    CHECK(beside.dkv.at(0, key, 1) == Approx(small.dkv.at(0, key, 1)).margin(1e-6));
  }
}

TEST_CASE("attention takes scores of any finite size, and negative scales with hidden keys") {
  for (const std::int64_t queries : {1, 2}) {
    for (const bool padded : {false, true}) {
      const Case c{1, queries, 4, 1, 1, 1, false, padded};
      AttentionOptions options = c.options();
      options.scale = -1;
      const auto q = Tensor<float>::full(c.q(), 1);
      const auto kv = Tensor<float>::from(c.kv(), {3e31F, 1, 2e31F, 2, 2e31F, 4, 2.5e31F, 8});
      const auto hidden = key_padding_mask(c);
      const Tensor<float> out(c.out()), exponentials({2, 1, 1, queries}), dq(c.q()), dkv(c.kv());
      scaled_dot_product_attention<float, Cpu>(
          {.options = options, .q = q, .kv = kv, .key_padding_mask = hidden, .out = out, .exponentials = exponentials});
      scaled_dot_product_attention_backward<float, Cpu>({.options = options,
                                                         .q = q,
                                                         .kv = kv,
                                                         .key_padding_mask = hidden,
                                                         .out = out,
                                                         .exponentials = exponentials,
                                                         .dout = Tensor<float>::full(c.out(), 1),
                                                         .dq = dq,
                                                         .dkv = dkv});
      CAPTURE(queries, padded);
      for (const float element : out.span()) CHECK(element == 3);  // the mean of the values of both smallest products
      for (std::int64_t key = 0; key < c.keys; ++key) {
        const double share = key == 1 || key == 2 ? 0.5 * static_cast<double>(queries) : 0;
        CHECK(static_cast<double>(dkv.at(0, key, 1)) == share);
      }
    }
  }
}

TEST_CASE("attention gives the same bits for any number of threads") {
  const Case c{2, 100, 100, 3, 3, 32, true, false};
  const auto qkv = random_tensor<float>({2, 100, 288}, 1);
  const auto dout = random_tensor<float>({2, 100, 96}, 2);
  Results<float> one;
  Results<float> three;
  with_threads(1, [&] { one = run(c, qkv, {}, dout); });
  with_threads(3, [&] { three = run(c, qkv, {}, dout); });
  require_identical(one.out, three.out);
  require_identical(one.exponentials, three.exponentials);
  require_identical(one.dq, three.dq);
}

TEST_CASE("attention works on any thread of a team") {
  const Case c{2, 40, 40, 3, 3, 32, true, false};
  const auto qkv = random_tensor<float>({2, 40, 288}, 1);
  const auto dout = random_tensor<float>({2, 40, 96}, 2);
  const auto alone = run(c, qkv, {}, dout);
  std::array<Results<float>, 5> of_team;
  with_threads(2, [&] {
#pragma omp parallel for num_threads(5) schedule(static, 1)
    for (std::size_t i = 0; i < 5; ++i) of_team[i] = run(c, qkv, {}, dout);
  });
  for (const Results<float>& results : of_team) {
    require_identical(results.out, alone.out);
    require_identical(results.dq, alone.dq);
  }
}

TEST_CASE("a cache may be larger than the keys in use") {
  const auto q = random_tensor<float>({1, 1, 8}, 1);
  const auto kv = random_tensor<float>({1, 9, 16}, 2);
  Tensor<float> out(q.shape()), of_part(q.shape()), exponentials({2, 1, 2, 1});
  scaled_dot_product_attention<float, Cpu>(
      {.options = {.heads = 2, .keys = 4}, .q = q, .kv = kv, .out = out, .exponentials = exponentials});
  scaled_dot_product_attention<float, Cpu>({.options = {.heads = 2},
                                            .q = q,
                                            .kv = kv.reshape({9, 16}).narrow(0, 4).reshape({1, 4, 16}),
                                            .out = of_part,
                                            .exponentials = exponentials});
  require_identical(out, of_part);
}

TEST_CASE("attention says which shape does not fit") {
  const Tensor<float> q({2, 4, 6}), kv({2, 3, 12}), exponentials({2, 2, 2, 4});
  const auto run = [&](const AttentionOptions& options, const Tensor<float>& keys) {
    scaled_dot_product_attention<float, Cpu>({.options = options, .q = q, .kv = keys, .out = q, .exponentials = exponentials});
  };
  CHECK_THROWS_WITH(run({.heads = 2, .causal = true}, kv), "attention: causal, but 4 queries are more than 3 keys");
  CHECK_THROWS_WITH(run({.heads = 3, .kv_heads = 2}, kv), "attention: 3 heads cannot share 2 heads of keys and values");
  CHECK_THROWS_WITH(run({.heads = 4}, {}), "attention: q of shape [2, 4, 6] does not split into 12 heads");
  CHECK_THROWS_WITH(run({.heads = 1}, {}), ContainsSubstring("attention: out has shape [2, 4, 6], but needs [2, 4, 2]"));
  CHECK_THROWS_WITH(run({.heads = 1, .value_size = 6}, {}),
                    "attention: q of shape [2, 4, 6] does not split into 2 heads and 6 values");
  CHECK_THROWS_WITH(run({.heads = 2, .value_size = -1}, kv), "attention: the value size is -1, but must not be below 0");
  CHECK_THROWS_WITH(run({.heads = 2}, q), "attention: kv has shape [2, 4, 6], but q of shape [2, 4, 6] needs [2, keys, 12]");
}
