// Edge cases of first keys and windows of attention; attention_test.cpp compares other cases with plain loops.

#include <cmath>
#include <vector>

#include "ops/compare.hpp"
#include "trireme/ops/attention/attention.hpp"

using namespace trireme;
using namespace trireme::ops;

TEST_CASE("queries whose first key comes after their last one see nothing, and keys that nobody sees get no gradient") {
  const AttentionOptions options{.heads = 1, .causal = true};
  const auto qkv = random_tensor<float>({1, 400, 24}, 1);
  auto first = Tensor<std::int32_t>::full({1, 400}, 390);
  const Tensor<float> out({1, 400, 8}), exponentials({2, 1, 1, 400});
  scaled_dot_product_attention<float, Cpu>(
      {.options = options, .q = qkv, .first_keys = first, .out = out, .exponentials = exponentials});
  auto dqkv = Tensor<float>::full({1, 400, 24}, 7.0F);
  scaled_dot_product_attention_backward<float, Cpu>({.options = options,
                                                     .q = qkv,
                                                     .first_keys = first,
                                                     .out = out,
                                                     .exponentials = exponentials,
                                                     .dout = random_tensor<float>({1, 400, 8}, 2),
                                                     .dq = dqkv});
  for (std::int64_t row = 0; row < 400; ++row) {
    CAPTURE(row);
    const auto sum_of = [&](const Tensor<float>& x, std::int64_t width) {
      float sum = 0;
      for (std::int64_t j = 0; j < width; ++j) sum += std::abs(x.data()[row * width + j]);
      return sum;
    };
    CHECK((sum_of(out, 8) == 0) == (row < 390));
    CHECK((sum_of(dqkv, 24) == 0) == (row < 390));
    REQUIRE(std::isfinite(sum_of(dqkv, 24)));
  }
}

TEST_CASE("first keys that see everything change no bit") {
  const AttentionOptions options{.heads = 4, .kv_heads = 2, .causal = true};
  for (const std::int64_t time : {5, 100, 800}) {
    const auto qkv = random_tensor<float>({2, time, 8 * 20}, 1);
    const auto out_of = [&](const Tensor<std::int32_t>& first, std::int64_t window) {
      AttentionOptions with = options;
      with.window = window;
      Tensor<float> out({2, time, 4 * 20});
      scaled_dot_product_attention<float, Cpu>(
          {.options = with, .q = qkv, .first_keys = first, .out = out, .exponentials = Tensor<float>({2, 2, 4, time})});
      return std::vector<float>(out.span().begin(), out.span().end());
    };
    CHECK(out_of({}, 0) == out_of(Tensor<std::int32_t>::zeros({2, time}), 0));
    CHECK(out_of({}, 0) == out_of({}, time));
  }
}

TEST_CASE("first keys that fall, are of another shape or negative, and windows that look ahead are errors") {
  const auto qkv = random_tensor<float>({2, 3, 24}, 1);
  const Tensor<float> out({2, 3, 8}), exponentials({2, 2, 1, 3});
  const auto attend = [&](const Tensor<std::int32_t>& first, bool causal, std::int64_t window) {
    scaled_dot_product_attention<float, Cpu>({.options = {.heads = 1, .causal = causal, .window = window},
                                              .q = qkv,
                                              .first_keys = first,
                                              .out = out,
                                              .exponentials = exponentials});
  };
  CHECK_THROWS_WITH(attend(Tensor<std::int32_t>::from({2, 3}, std::vector<std::int32_t>{0, 0, 1, 0, 2, 1}), true, 0),
                    "attention: first_keys decrease from 2 to 1 at query 2 of sequence 1");
  CHECK_THROWS_AS(attend(Tensor<std::int32_t>::full({2, 3}, -1), true, 0), Error);
  CHECK_THROWS_WITH(attend(Tensor<std::int32_t>::zeros({2, 4}), true, 0), ContainsSubstring("first_keys"));
  CHECK_THROWS_WITH(attend({}, false, 2), "attention: a window of 2 keys is for causal attention");
  CHECK_THROWS_AS(attend({}, true, -2), Error);
}
