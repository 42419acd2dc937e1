#include <array>

#include "ops/compare.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/core/float16.hpp"
#include "trireme/ops/attention/attention.hpp"

// Attention on the GPU against the same on the CPU: by cuDNN where it plans, else by tiles
// (ops/attention/attention_choice.hpp).
using namespace trireme;
using namespace trireme::ops;

namespace {

struct Case {
  std::int64_t batch, queries, keys, key_rows, heads, kv_heads, size;
  bool packed, causal, padded;
  std::int64_t window = 0;
  std::int64_t document = 0;  // above 0: keys lie in documents of so many

  AttentionOptions options() const {
    return {.heads = static_cast<int>(heads),
            .kv_heads = static_cast<int>(kv_heads),
            .causal = causal,
            .window = window,
            .keys = keys};
  }
  Shape q() const { return {batch, queries, (heads + (packed ? 2 * kv_heads : 0)) * size}; }
  Shape kv() const { return {batch, key_rows, 2 * kv_heads * size}; }
  Shape out() const { return {batch, queries, heads * size}; }
};

Tensor<std::int32_t> first_keys(const Case& c) {
  if (c.document == 0) return {};
  Tensor<std::int32_t> first({c.batch, c.queries});
  for (std::int64_t i = 0; i < first.numel(); ++i) {
    first.data()[i] = static_cast<std::int32_t>((i % c.queries + c.keys - c.queries) / c.document * c.document);
  }
  return first;
}

template <typename T, typename D>
struct Results {
  Tensor<T, D> out, dq, dkv;
  Tensor<Accumulate<T>, D> exponentials;
};

Tensor<std::int32_t> key_padding_mask(const Case& c) {
  if (!c.padded) return {};
  Tensor<std::int32_t> hidden({c.batch, c.key_rows});
  for (std::int64_t i = 0; i < hidden.numel(); ++i) hidden.data()[i] = i % c.key_rows % 5 == i / c.key_rows % 2 ? 1 : 0;
  return hidden;
}

// Both passes; the backward pass gets the results of the forward pass of the CPU, so that it alone is compared.
template <typename T, typename D>
Results<T, D> run(const Case& c, const Results<T, Cpu>* of_forward) {
  const auto there = [](const auto& tensor) {
    return tensor.defined() ? tensor.template to<D>() : decltype(tensor.template to<D>())();
  };
  const auto q = there(random_tensor<T>(c.q(), 1));
  const auto kv = there(c.packed ? Tensor<T>() : random_tensor<T>(c.kv(), 2));
  const auto dout = there(random_tensor<T>(c.out(), 3));
  const auto hidden = there(key_padding_mask(c));
  const auto first = there(first_keys(c));
  const T unset = static_cast<T>(7.0f);
  const Results<T, D> results{.out = Tensor<T, D>(c.out()),
                              .dq = Tensor<T, D>::full(c.q(), unset),
                              .dkv = c.packed ? Tensor<T, D>() : Tensor<T, D>::full(c.kv(), unset),
                              .exponentials = Tensor<Accumulate<T>, D>({2, c.batch, c.heads, c.queries})};
  scaled_dot_product_attention<T, D>({.options = c.options(),
                                      .q = q,
                                      .kv = kv,
                                      .key_padding_mask = hidden,
                                      .first_keys = first,
                                      .out = results.out,
                                      .exponentials = results.exponentials});
  scaled_dot_product_attention_backward<T, D>(
      {.options = c.options(),
       .q = q,
       .kv = kv,
       .key_padding_mask = hidden,
       .first_keys = first,
       .out = of_forward == nullptr ? results.out : there(of_forward->out),
       .exponentials = of_forward == nullptr ? results.exponentials : there(of_forward->exponentials),
       .dout = dout,
       .dq = results.dq,
       .dkv = results.dkv});
  return results;
}

// cuDNN rounds probabilities and their gradients to the element type before they are multiplied.
template <typename T>
double bound() {
  return std::is_same_v<T, bfloat16> ? 0x1p-5 : std::is_same_v<T, float16> ? 0x1p-8 : tolerance<T>(4e-5);
}
template <typename T>
void require_same(const Tensor<T, Cuda>& got, const Tensor<T>& expected, double bound) {
  require_close(got.template to<Cpu>(), as_doubles(expected), bound);
}

template <typename T>
void compare(const Case& c) {
  CAPTURE(c.batch, c.queries, c.keys, c.key_rows, c.heads, c.kv_heads, c.size, c.packed, c.causal, c.padded);
  const auto here = run<T, Cpu>(c, nullptr);
  const auto there = run<T, Cuda>(c, &here);
  require_same(there.out, here.out, bound<T>());
  require_close(log_sums(there.exponentials.template to<Cpu>()), as_doubles(log_sums(here.exponentials)),
                sizeof(T) == 8 ? 1e-12 : 1e-4);
  require_same(there.dq, here.dq, bound<T>());
  if (!c.packed) require_same(there.dkv, here.dkv, bound<T>());
}

}  // namespace

TEMPLATE_TEST_CASE("self-attention of packed rows", "", float, double, bfloat16, float16) {
  for (const Case& c :
       {Case{1, 1, 1, 1, 1, 1, 1, true, true, false}, Case{2, 5, 5, 5, 3, 3, 8, true, true, false},
        Case{2, 100, 100, 100, 4, 2, 64, true, true, false}, Case{1, 197, 197, 197, 3, 3, 64, true, false, false},
        Case{2, 256, 256, 256, 2, 2, 64, true, true, false}, Case{1, 130, 130, 130, 4, 1, 128, true, true, false},
        Case{1, 65, 65, 65, 2, 2, 20, true, true, false}, Case{1, 70, 70, 70, 2, 2, 256, true, true, false}}) {
    compare<TestType>(c);
  }
}

TEMPLATE_TEST_CASE("attention to other sequences", "", float, double, bfloat16, float16) {
  for (const Case& c : {Case{2, 50, 300, 300, 2, 2, 64, false, false, false}, Case{2, 77, 77, 77, 4, 2, 72, false, true, false},
                        Case{1, 61, 200, 200, 3, 1, 64, false, true, true}, Case{2, 5, 9, 9, 2, 2, 16, false, false, true},
                        Case{1, 97, 98, 98, 2, 2, 40, false, true, false}}) {
    compare<TestType>(c);
  }
}

TEMPLATE_TEST_CASE("queries of a cache with room for more keys", "", float, double, bfloat16, float16) {
  for (const Case& c : {Case{2, 1, 70, 100, 6, 2, 24, false, true, false}, Case{1, 30, 70, 100, 2, 2, 64, false, true, false},
                        Case{3, 1, 17, 17, 2, 2, 64, false, false, false}}) {
    compare<TestType>(c);
  }
}

TEMPLATE_TEST_CASE("attention inside documents and windows on the GPU", "", float, double, bfloat16, float16) {
  for (const Case& c :
       {Case{2, 100, 100, 100, 4, 2, 64, true, true, false, 0, 30}, Case{1, 256, 256, 256, 2, 2, 64, true, true, false, 0, 64},
        Case{2, 130, 130, 130, 2, 1, 40, true, true, false, 17, 0}, Case{1, 97, 97, 97, 2, 2, 64, true, true, false, 5, 33},
        Case{2, 61, 200, 200, 3, 1, 64, false, true, true, 50, 90}}) {
    compare<TestType>(c);
  }
}

TEST_CASE("tiles of attention give the same bits in every run") {
  const Case c{2, 100, 100, 100, 4, 2, 64, true, true, false};
  const auto first = run<float, Cuda>(c, nullptr);
  const auto second = run<float, Cuda>(c, nullptr);
  require_identical(first.out.to<Cpu>(), second.out.to<Cpu>());
  require_identical(first.dq.to<Cpu>(), second.dq.to<Cpu>());
}

TEST_CASE("attention on a GPU refuses heads that are too large for it") {
  const Tensor<double, Cuda> q({1, 1, 3 * 4000}), out({1, 1, 4000}), exponentials({2, 1, 1, 1});
  CHECK_THROWS_WITH((scaled_dot_product_attention<double, Cuda>({.q = q, .out = out, .exponentials = exponentials})),
                    ContainsSubstring("attention: a head of 4000 elements is too large"));
}
