#include "ops/attention/attention_choice.hpp"

#include "catch.hpp"

using namespace trireme;
using namespace trireme::ops;

namespace {

// GPT-2 in bfloat16.
AttentionCase gpt() {
  return {.dtype = DType::bfloat16,
          .sizes = {.batch = 8,
                    .queries = 1024,
                    .keys = 1024,
                    .key_rows = 1024,
                    .heads = 12,
                    .kv_heads = 12,
                    .size = 64,
                    .value_size = 64,
                    .q_stride = 2304,
                    .kv_stride = 2304,
                    .packed = true},
          .causal = true,
          .key_padding_mask = false,
          .first_keys = false,
          .aligned = true};
}

template <typename Change>
AttentionChoice choice_after(const Change& change) {
  AttentionCase attention = gpt();
  change(attention);
  return choose_attention_kernel(attention);
}

}  // namespace

TEST_CASE("cuDNN computes attention that it can plan") {
  const auto by_cudnn = [](const auto& change) { return choice_after(change).kernel == AttentionKernel::cudnn; };
  CHECK(by_cudnn([](AttentionCase&) {}));
  CHECK(by_cudnn([](AttentionCase& attention) { attention.dtype = DType::float16; }));
  CHECK(by_cudnn([](AttentionCase& attention) { attention.causal = false; }));
  CHECK(by_cudnn([](AttentionCase& attention) { attention.sizes.kv_heads = 4; }));
  CHECK(by_cudnn([](AttentionCase& attention) {
    attention.causal = false;
    attention.sizes.queries = 77;
  }));
}

TEST_CASE("other attention is computed by tiles, for a reason") {
  const auto reason = [](const auto& change) {
    const AttentionChoice choice = choice_after(change);
    CHECK(choice.kernel == AttentionKernel::tiles);
    return std::string(choice.reason);
  };
  CHECK_THAT(reason([](AttentionCase& attention) { attention.dtype = DType::float32; }), ContainsSubstring("float16 only"));
  CHECK_THAT(reason([](AttentionCase& attention) { attention.dtype = DType::float64; }), ContainsSubstring("float16 only"));
  CHECK_THAT(reason([](AttentionCase& attention) { attention.sizes.size = 20; }), ContainsSubstring("multiples of 8"));
  CHECK_THAT(reason([](AttentionCase& attention) { attention.sizes.size = 264; }), ContainsSubstring("up to 256"));
  CHECK_THAT(reason([](AttentionCase& attention) { attention.key_padding_mask = true; }),
             ContainsSubstring("hides single keys"));
  CHECK_THAT(reason([](AttentionCase& attention) { attention.first_keys = true; }), ContainsSubstring("from first_keys on"));
  CHECK_THAT(reason([](AttentionCase& attention) { attention.sizes.queries = 77; }), ContainsSubstring("causal queries"));
  CHECK_THAT(reason([](AttentionCase& attention) { attention.sizes.key_rows = 2048; }), ContainsSubstring("cache"));
  CHECK_THAT(reason([](AttentionCase& attention) { attention.aligned = false; }), ContainsSubstring("aligned"));
  CHECK_THAT(reason([](AttentionCase& attention) {
               attention.causal = false;
               attention.sizes.queries = 1;
             }),
             ContainsSubstring("one query"));
  CHECK_THAT(reason([](AttentionCase& attention) {
               attention.causal = false;
               attention.sizes.keys = attention.sizes.key_rows = 1;
             }),
             ContainsSubstring("one query or key"));
  CHECK_THAT(reason([](AttentionCase& attention) {
               attention.causal = false;
               attention.sizes.keys = attention.sizes.key_rows = 192;
             }),
             ContainsSubstring("blocks of 128"));
}
