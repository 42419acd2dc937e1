#include "trireme/ops/attention.hpp"

#include "ops/compare.hpp"
#include "ops/threads.hpp"

using namespace trireme;
using namespace trireme::ops;

namespace {

struct Sizes {
  std::int64_t batch, time, heads, size;
  std::int64_t width() const { return heads * size; }
};

struct Expected {
  Doubles out, log_sum_exp, dqkv;
};

// Whole matrices of scores, plain loops.
Expected naive(const Sizes& sizes, const Doubles& qkv, const Doubles& dout) {
  const std::int64_t width = sizes.width();
  Expected result{Doubles(dout.size()), Doubles(static_cast<std::size_t>(sizes.batch * sizes.heads * sizes.time)),
                  Doubles(qkv.size())};
  const double scale = 1 / std::sqrt(static_cast<double>(sizes.size));
  for (std::int64_t pair = 0; pair < sizes.batch * sizes.heads; ++pair) {
    const std::int64_t first = pair / sizes.heads * sizes.time;
    const std::int64_t column = pair % sizes.heads * sizes.size;
    // part 0, 1, 2: query, key, value
    const auto at = [&](int part, std::int64_t row, std::int64_t j) {
      return static_cast<std::size_t>((first + row) * 3 * width + part * width + column + j);
    };
    const auto out_at = [&](std::int64_t row, std::int64_t j) {
      return static_cast<std::size_t>((first + row) * width + column + j);
    };
    for (std::int64_t row = 0; row < sizes.time; ++row) {
      Doubles p;
      double sum = 0;
      for (std::int64_t key = 0; key <= row; ++key) {
        double score = 0;
        for (std::int64_t j = 0; j < sizes.size; ++j) score += qkv[at(0, row, j)] * qkv[at(1, key, j)];
        p.push_back(std::exp(scale * score));
        sum += p.back();
      }
      result.log_sum_exp[static_cast<std::size_t>(pair * sizes.time + row)] = std::log(sum);
      Doubles dp;
      double delta = 0;
      for (std::int64_t key = 0; key <= row; ++key) {
        double& probability = p[static_cast<std::size_t>(key)];
        probability /= sum;
        double gradient = 0;
        for (std::int64_t j = 0; j < sizes.size; ++j) {
          result.out[out_at(row, j)] += probability * qkv[at(2, key, j)];
          gradient += dout[out_at(row, j)] * qkv[at(2, key, j)];
          result.dqkv[at(2, key, j)] += probability * dout[out_at(row, j)];
        }
        dp.push_back(gradient);
        delta += probability * gradient;
      }
      for (std::int64_t key = 0; key <= row; ++key) {
        const auto index = static_cast<std::size_t>(key);
        const double ds = scale * p[index] * (dp[index] - delta);
        for (std::int64_t j = 0; j < sizes.size; ++j) {
          result.dqkv[at(0, row, j)] += ds * qkv[at(1, key, j)];
          result.dqkv[at(1, key, j)] += ds * qkv[at(0, row, j)];
        }
      }
    }
  }
  return result;
}

template <typename T>
struct Results {
  Tensor<T> out, log_sum_exp, dqkv;
};

template <typename T>
Results<T> run(const Sizes& sizes, const Tensor<T>& qkv, const Tensor<T>& dout) {
  Results<T> results{Tensor<T>(dout.shape()), Tensor<T>({sizes.batch, sizes.heads, sizes.time}),
                     Tensor<T>::full(qkv.shape(), std::numeric_limits<T>::quiet_NaN())};
  const auto heads = static_cast<int>(sizes.heads);
  causal_attention(qkv, heads, results.out, results.log_sum_exp);
  causal_attention_backward(qkv, heads, results.out, results.log_sum_exp, dout, results.dqkv);
  return results;
}

}  // namespace

TEMPLATE_TEST_CASE("causal attention forward and backward", "", float, double) {
  for (const Sizes sizes : {Sizes{1, 1, 1, 1}, Sizes{2, 5, 3, 8}, Sizes{1, 48, 1, 64}, Sizes{2, 49, 2, 16}, Sizes{1, 97, 2, 20},
                            Sizes{1, 130, 1, 33}, Sizes{1, 256, 2, 64}, Sizes{1, 401, 1, 80}, Sizes{1, 900, 1, 24}}) {
    CAPTURE(sizes.batch, sizes.time, sizes.heads, sizes.size);
    const auto qkv = random_tensor<TestType>({sizes.batch, sizes.time, 3 * sizes.width()}, 1);
    const auto dout = random_tensor<TestType>({sizes.batch, sizes.time, sizes.width()}, 2);
    const Expected expected = naive(sizes, as_doubles(qkv), as_doubles(dout));
    const auto results = run(sizes, qkv, dout);
    require_close(results.out, expected.out, tolerance<TestType>(1e-5));
    require_close(results.log_sum_exp, expected.log_sum_exp, tolerance<TestType>(1e-5));
    require_close(results.dqkv, expected.dqkv, tolerance<TestType>(2e-5));
  }
}

TEST_CASE("causal attention of large scores does not overflow") {
  const Sizes sizes{1, 70, 1, 16};
  const auto qkv = random_tensor<float>({1, 70, 48}, 3, 30);
  const auto dout = random_tensor<float>({1, 70, 16}, 4);
  const auto results = run(sizes, qkv, dout);
  for (const float element : results.out.span()) REQUIRE(std::isfinite(element));
  for (const float element : results.dqkv.span()) REQUIRE(std::isfinite(element));
}

TEST_CASE("causal attention gives the same bits for any number of threads") {
  const Sizes sizes{2, 100, 3, 32};
  const auto qkv = random_tensor<float>({2, 100, 288}, 1);
  const auto dout = random_tensor<float>({2, 100, 96}, 2);
  Results<float> one;
  Results<float> three;
  with_threads(1, [&] { one = run(sizes, qkv, dout); });
  with_threads(3, [&] { three = run(sizes, qkv, dout); });
  require_identical(one.out, three.out);
  require_identical(one.log_sum_exp, three.log_sum_exp);
  require_identical(one.dqkv, three.dqkv);
}

TEST_CASE("causal attention says which shape does not fit") {
  Tensor<float> out({1, 4, 6});
  Tensor<float> log_sum_exp({1, 4, 4});
  CHECK_THROWS_WITH(causal_attention(Tensor<float>({1, 4, 18}), 4, out, log_sum_exp),
                    ContainsSubstring("qkv of shape [1, 4, 18] does not split into q, k and v of 4 heads"));
  CHECK_THROWS_WITH(causal_attention(Tensor<float>({1, 4, 18}), 3, out, log_sum_exp),
                    "causal_attention: log_sum_exp has shape [1, 4, 4], but needs [1, 3, 4]");
}
