#include <algorithm>
#include <cmath>

#include "backward_function.hpp"
#include "gradient_check.hpp"
#include "trireme/autograd/composed/masked_attention.hpp"
#include "trireme/autograd/composed/operators.hpp"
#include "trireme/autograd/operations/array.hpp"
#include "trireme/autograd/operations/attention.hpp"
#include "trireme/autograd/operations/embedding.hpp"
#include "trireme/autograd/operations/norm.hpp"
#include "trireme/ops/reduce/softmax.hpp"

using namespace trireme;
using namespace trireme::tests;
using testing::check_gradients;

TEST_CASE("gradients of arithmetic") {
  expect_passed(check_gradients([](const Inputs& in) { return add(in[0], in[1]); }, {random({3, 4}, 1), random({3, 4}, 2)}));
  expect_passed(check_gradients([](const Inputs& in) { return multiply(in[0], in[1]); }, {random({5}, 1), random({5}, 2)}));
  expect_passed(check_gradients([](const Inputs& in) { return multiply(in[0], in[0]); }, {random({5}, 1)}));
  expect_passed(check_gradients([](const Inputs& in) { return scale(in[0], -2.5); }, {random({2, 3}, 1)}));
  expect_passed(check_gradients([](const Inputs& in) { return reshape(in[0], {6}); }, {random({2, 3}, 1)}));
  expect_passed(check_gradients([](const Inputs& in) { return sum(in[0]); }, {random({7}, 1)}));
}

TEST_CASE("gradients of activations") {
  using ops::Activation;
  for (const auto kind : {Activation::gelu_tanh, Activation::gelu_erf, Activation::relu, Activation::silu, Activation::sigmoid,
                          Activation::tanh}) {
    CAPTURE(static_cast<int>(kind));
    expect_passed(check_gradients([kind](const Inputs& in) { return activation(kind, in[0]); }, {random({37}, 3)}));
  }
}

TEST_CASE("gradients of activations with parameters, softmax and transpose") {
  expect_passed(check_gradients([](const Inputs& in) { return leaky_relu(in[0], 0.2); }, {random({37}, 3)}));
  expect_passed(
      check_gradients([](const Inputs& in) { return softplus(in[0], {.beta = 3, .threshold = 2}); }, {random({37}, 3)}));
  for (const int dim : {-1, 0, 1}) {
    CAPTURE(dim);
    expect_passed(check_gradients([=](const Inputs& in) { return softmax(in[0], dim); }, {random({3, 4, 5}, 1)}));
    expect_passed(check_gradients([=](const Inputs& in) { return log_softmax(in[0], dim); }, {random({3, 4, 5}, 1)}));
  }
  expect_passed(check_gradients([](const Inputs& in) { return transpose(in[0], 0, 2); }, {random({2, 3, 4, 2}, 1)}));
}

TEST_CASE("gradients of linear") {
  expect_passed(check_gradients([](const Inputs& in) { return linear(in[0], in[1], in[2]); },
                                {random({2, 3, 5}, 1), random({4, 5}, 2), random({4}, 3)}));
  expect_passed(check_gradients([](const Inputs& in) { return linear(in[0], in[1]); }, {random({3, 5}, 1), random({4, 5}, 2)}));
}

TEST_CASE("gradients of an MLP, which can be those of some of its inputs alone") {
  const auto x = random({2, 3, 5}, 1), weight1 = random({8, 5}, 2), weight2 = random({4, 8}, 4);
  const auto bias1 = random({8}, 3), bias2 = random({4}, 5);
  expect_passed(check_gradients([](const Inputs& in) { return linear_gelu_linear(in[0], in[1], in[2], in[3], in[4]); },
                                {x, weight1, bias1, weight2, bias2}));
  expect_passed(check_gradients([&](const Inputs& in) { return linear_gelu_linear<double, Cpu>(x, in[0], bias1, weight2, {}); },
                                {weight1}));
  expect_passed(check_gradients(
      [&](const Inputs& in) { return linear_gelu_linear<double, Cpu>(in[0], weight1, {}, weight2, bias2); }, {x}));
  expect_passed(check_gradients(
      [&](const Inputs& in) { return linear_gelu_linear<double, Cpu>(x, weight1, bias1, in[0], bias2); }, {weight2}));
}

TEST_CASE("gradients of layer norm, alone and with a residual that is used again") {
  expect_passed(check_gradients([](const Inputs& in) { return layer_norm(in[0], in[1], in[2], 1e-5); },
                                {random({3, 8}, 1), random({8}, 2), random({8}, 3)}));
  expect_passed(check_gradients(
      [](const Inputs& in) {
        const auto [stream, normalized] = residual_layer_norm(in[0], in[1], in[2], in[3], 1e-5);
        return add(stream, normalized);
      },
      {random({3, 8}, 1), random({3, 8}, 2), random({8}, 3), random({8}, 4)}));
  expect_passed(check_gradients([](const Inputs& in) { return residual_layer_norm(in[0], in[1], in[2], in[3], 1e-5).first; },
                                {random({3, 8}, 1), random({3, 8}, 2), random({8}, 3), random({8}, 4)}));
}

TEST_CASE("layer norm over several dims is that of one row of their elements") {
  const Variable<double> x = random({2, 3, 4}, 1), weight = random({3, 4}, 2), bias = random({3, 4}, 3);
  const auto flat = [](const Variable<double>& v, const Shape& shape) { return reshape(v, shape); };
  const auto wanted = layer_norm(flat(x, {2, 12}), flat(weight, {12}), flat(bias, {12}), 1e-5);
  const auto got = layer_norm(x, weight, bias, 1e-5, 2);
  CHECK(got.shape() == x.shape());
  CHECK(std::ranges::equal(got.value().span(), wanted.value().span()));
  const auto all = layer_norm(x, {}, {}, 1e-5, 3);
  CHECK(std::ranges::equal(all.value().span(), layer_norm(flat(x, {24}), {}, {}, 1e-5).value().span()));
  CHECK_THROWS_WITH(layer_norm(x, flat(weight, {4, 3}), bias, 1e-5, 2),
                    "layer_norm: weight has shape [4, 3], but needs [3, 4]");
  CHECK_THROWS_WITH(layer_norm(x, {}, {}, 1e-5, 4), "layer_norm: x [2, 3, 4] has no last 4 dims");
  CHECK_THROWS_WITH(layer_norm(x, {}, {}, 1e-5, 0), "layer_norm: x [2, 3, 4] has no last 0 dims");
}

TEST_CASE("gradients of rms norm, alone and with a residual that is used again") {
  expect_passed(
      check_gradients([](const Inputs& in) { return rms_norm(in[0], in[1], 1e-5); }, {random({3, 8}, 1), random({8}, 2)}));
  expect_passed(check_gradients(
      [](const Inputs& in) {
        const auto [stream, normalized] = residual_rms_norm(in[0], in[1], in[2], 1e-5);
        return add(stream, normalized);
      },
      {random({3, 8}, 1), random({3, 8}, 2), random({8}, 3)}));
}

TEST_CASE("gradients of matrix products whose leading dims are broadcast") {
  const auto product = [](const Inputs& in) { return matmul(in[0], in[1]); };
  expect_passed(check_gradients(product, {random({2, 3, 4}, 1), random({2, 4, 5}, 2)}));
  expect_passed(check_gradients(product, {random({2, 1, 3, 4}, 1), random({3, 4, 2}, 2)}));
  expect_passed(check_gradients(product, {random({2, 2, 3, 4}, 1), random({4, 2}, 2)}));
  expect_passed(check_gradients(product, {random({3, 4}, 1), random({2, 4, 2}, 2)}));
  Tape tape;
  for (const Shape& b : {Shape{3, 4, 5}, Shape{5, 4}, Shape{3}, Shape{}}) {
    CAPTURE(b.str());
    try {
      matmul(Variable<double>(random({2, 3, 4}, 1)), Variable<double>(random(b, 2)));
      FAIL("multiplied");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::invalid_argument);
      CHECK_THAT(error.what(), ContainsSubstring("matmul: [2, 3, 4] and " + b.str() + " do not fit"));
    }
  }
}

TEST_CASE("gradients of scaled dot-product attention") {
  Tensor<std::int32_t> hidden = Tensor<std::int32_t>::zeros({2, 9});
  for (const int key : {0, 7, 8, 12}) hidden.data()[key] = 1;
  const auto cross = [&](const ops::AttentionOptions& options, bool padded, std::int64_t queries, std::int64_t kv_heads) {
    CAPTURE(options.causal, options.keys, padded, queries, kv_heads);
    expect_passed(check_gradients(
        [&](const Inputs& in) {
          return scaled_dot_product_attention(in[0], in[1], options, padded ? hidden : Tensor<std::int32_t>());
        },
        {random({2, queries, 20}, 1), random({2, 9, 2 * kv_heads * 5}, 2)}));
  };
  cross({.heads = 4}, false, 5, 4);
  cross({.heads = 4, .kv_heads = 2, .scale = 0.3}, true, 5, 2);
  cross({.heads = 4, .kv_heads = 1, .causal = true}, false, 5, 1);
  cross({.heads = 4, .kv_heads = 2, .causal = true}, true, 8, 2);
  cross({.heads = 4, .causal = true, .keys = 6}, false, 1, 4);
  expect_passed(check_gradients(
      [](const Inputs& in) { return scaled_dot_product_attention(in[0], {}, {.heads = 4, .kv_heads = 2, .causal = true}); },
      {random({2, 7, 8 * 3}, 1)}));
}

TEST_CASE("gradients of attention inside documents and windows, which is masked attention with these masks") {
  const auto starts = Tensor<std::int32_t>::from({2, 7}, std::vector<std::int32_t>{0, 0, 0, 3, 4, 4, 4, 0, 1, 2, 2, 2, 2, 6});
  const ops::AttentionOptions plain{.heads = 4, .kv_heads = 2, .causal = true},
      windowed{.heads = 4, .kv_heads = 2, .causal = true, .window = 2};
  const Tensor<double> qkv = random({2, 7, 8 * 3}, 1);
  const auto check = [&](const ops::AttentionOptions& options, const Tensor<std::int32_t>& first_keys) {
    const auto attend = [&](const Inputs& in) { return scaled_dot_product_attention(in[0], {}, options, {}, first_keys); };
    expect_passed(check_gradients(attend, {qkv}));
    AttentionMask<double> mask{.causal = true, .window = options.window};
    if (first_keys.defined()) {
      mask.mask = ge(arange<std::int32_t, Cpu>(7), first_keys.reshape({2, 1, 7, 1}));
    }
    const Variable<double> x(qkv);
    const auto by_mask = join_heads(masked_attention(split_heads(narrow(x, 2, 0, 12), 4), split_heads(narrow(x, 2, 12, 6), 2),
                                                     split_heads(narrow(x, 2, 18, 6), 2), mask));
    const auto had = attend({x}).value(), wanted = by_mask.value();
    for (std::int64_t i = 0; i < wanted.numel(); ++i) CHECK(had.data()[i] == Approx(wanted.data()[i]).epsilon(1e-12));
  };
  check(plain, starts);
  check(windowed, {});
  check(windowed, starts);
}

TEST_CASE("rotary positions count from where a document starts") {
  const auto starts = Tensor<std::int32_t>::from({1, 5}, std::vector<std::int32_t>{0, 0, 2, 2, 2});
  const ops::RotaryOptions options{.size = 4, .heads = 2};
  expect_passed(check_gradients([&](const Inputs& in) { return rotary(in[0], options, starts); }, {random({1, 5, 11}, 1)}));
  const Variable<double> x(random({1, 5, 8}, 1));
  const auto both = rotary(x, options, starts).value();
  for (const auto& [first, count] : {std::pair{0, 2}, std::pair{2, 3}}) {
    const auto alone = rotary(narrow(x, 1, first, count), options).value();
    const auto part = both.reshape({5, 8}).narrow(first, count);
    CHECK(std::equal(alone.span().begin(), alone.span().end(), part.data()));
  }
  const auto after = Tensor<std::int32_t>::from({1, 5}, std::vector<std::int32_t>{0, 0, 3, 3, 3});
  CHECK_THROWS_WITH(rotary(x, options, after), ContainsSubstring("the document of place 2 can't start at place 3"));
}

TEST_CASE("gradients of rotary positions, which turn queries and keys by their distance alone") {
  const ops::RotaryOptions options{.size = 4, .heads = 2, .first_position = 3};
  expect_passed(check_gradients([&](const Inputs& in) { return rotary(in[0], options); }, {random({2, 3, 11}, 1)}));
  ops::RotaryOptions scaled = options;
  scaled.scaling = {.kind = ops::RotaryScalingKind::yarn, .factor = 4, .trained_positions = 8, .attention_factor = 1.3};
  expect_passed(check_gradients([&](const Inputs& in) { return rotary(in[0], scaled); }, {random({2, 3, 11}, 1)}));
  scaled.scaling.trained_positions = 0;
  CHECK_THROWS_WITH(rotary(Variable<double>(random({2, 3, 11}, 1)), scaled), ContainsSubstring("trained_positions 0"));
  const auto product = [](std::int64_t query_position, std::int64_t key_position) {
    const auto q = rotary(Variable<double>(random({1, 1, 8}, 1)), {.size = 8, .heads = 1, .first_position = query_position});
    const auto k = rotary(Variable<double>(random({1, 1, 8}, 2)), {.size = 8, .heads = 1, .first_position = key_position});
    return sum(multiply(q, k)).value().item();
  };
  CHECK(product(9, 4) == Approx(product(105, 100)));
  CHECK(product(9, 4) != Approx(product(9, 5)));
}

TEST_CASE("a padding row of an embedding gets no gradient") {
  const auto index = Tensor<std::int32_t>::from({3}, std::vector<std::int32_t>{1, 0, 1});
  Tape tape;
  Tensor<double> gradient;
  const auto weight = watch(random({3, 2}, 1), [&](const Tensor<double>& dy) { gradient = dy; });
  sum(embedding(index, weight, 1)).backward();
  const std::vector<double> expected{1, 1, 0, 0, 0, 0};
  CHECK(std::equal(expected.begin(), expected.end(), gradient.data()));
  CHECK_THROWS_WITH(embedding(index, weight, 3), ContainsSubstring("padding_idx is 3, but must lie in [-3, 3)"));
}

TEST_CASE("gradients of embeddings and of the cross-entropy with an ignored target") {
  const auto index = Tensor<std::int32_t>::from({2, 3}, std::vector<std::int32_t>{1, 0, 4, 4, 2, 1});
  expect_passed(check_gradients([&](const Inputs& in) { return embedding(index, in[0]); }, {random({5, 3}, 1)}));
  expect_passed(check_gradients([&](const Inputs& in) { return token_embedding(index, in[0], in[1]); },
                                {random({5, 3}, 1), random({4, 3}, 2)}));
  const auto targets = Tensor<std::int32_t>::from({3}, std::vector<std::int32_t>{3, ops::ignored_target, 0});
  expect_passed(check_gradients([&](const Inputs& in) { return cross_entropy(in[0], targets).sum; }, {random({3, 4}, 1)}));
}

TEST_CASE("gradients of losses") {
  const auto targets = Tensor<std::int32_t>::from({4}, std::vector<std::int32_t>{3, 7, 0, 3});
  const ops::CrossEntropyOptions<double, Cpu> options{
      .ignore_index = 7,
      .label_smoothing = 0.2,
      .class_weight = Tensor<double>::from({5}, std::vector<double>{0.5, 1, 2, 3, 0.25})};
  expect_passed(
      check_gradients([&](const Inputs& in) { return cross_entropy(in[0], targets, options).sum; }, {random({4, 5}, 1)}));
  expect_passed(
      check_gradients([&](const Inputs& in) { return cross_entropy_rows(in[0], targets, options); }, {random({4, 5}, 1)}));
  const auto other = random({3, 4}, 2);
  Tensor<double> probabilities(other.shape());
  ops::softmax(other, probabilities);
  expect_passed(check_gradients([&](const Inputs& in) { return mse_loss(in[0], other).sum; }, {random({3, 4}, 1)}));
  expect_passed(
      check_gradients([&](const Inputs& in) { return bce_with_logits(in[0], probabilities, 2.5).sum; }, {random({3, 4}, 1)}));
  expect_passed(check_gradients([&](const Inputs& in) { return kl_divergence(log_softmax(in[0]), probabilities).sum; },
                                {random({3, 4}, 1)}));
  expect_passed(
      check_gradients([&](const Inputs& in) { return distillation_loss(in[0], other, 2.0).sum; }, {random({3, 4}, 1)}));
}

TEST_CASE("losses have the values of their definitions") {
  const auto x = Tensor<double>::from({2, 2}, std::vector<double>{0.5, -1, 2, 3});
  const auto target = Tensor<double>::from({2, 2}, std::vector<double>{0.25, 0.75, 1, 0});
  CHECK(mse_loss(Variable<double>(x), target).mean() == Approx((0.0625 + 3.0625 + 1 + 9) / 4));
  const auto bce = [](double logit, double t) {
    const double p = 1 / (1 + std::exp(-logit));
    return -(3 * t * std::log(p) + (1 - t) * std::log(1 - p));
  };
  CHECK(bce_with_logits(Variable<double>(x), target, 3).mean() ==
        Approx((bce(0.5, 0.25) + bce(-1, 0.75) + bce(2, 1) + bce(3, 0)) / 4));
  const auto kl = kl_divergence(Variable<double>(x), target);
  CHECK(kl.target_weight == 2);
  CHECK(kl.mean() == Approx((0.25 * (std::log(0.25) - 0.5) + 0.75 * (std::log(0.75) + 1) - 2) / 2));
  CHECK(distillation_loss(Variable<double>(x), x, 3.0).mean() == Approx(0).margin(1e-12));
}

TEST_CASE("the mean of a sum of losses is the sum of their means; losses of other targets have none") {
  const auto x = random({3, 4}, 1);
  const auto loss = [&](const Variable<double>& in) {
    return add(mse_loss(in, Tensor<double>::full({3, 4}, 1)), mse_loss(scale(in, 2.0), Tensor<double>::zeros({3, 4})));
  };
  CHECK(loss({x}).mean() == Approx(mse_loss(Variable<double>(x), Tensor<double>::full({3, 4}, 1)).mean() +
                                   4 * mse_loss(Variable<double>(x), Tensor<double>::zeros({3, 4})).mean()));
  CHECK(loss({x}).target_weight == 12);
  CHECK(loss({x}).nominal_targets == 12);
  expect_passed(check_gradients([&](const Inputs& in) { return loss(in[0]).sum; }, {x}));
  const auto smaller = mse_loss(Variable<double>(random({3, 3}, 1)), Tensor<double>::zeros({3, 3}));
  CHECK_THROWS_AS(add(loss({x}), smaller), Error);
}

TEST_CASE("losses are added and scaled by operators") {
  const auto x = random({3, 4}, 1);
  const auto zeros = Tensor<double>::zeros({3, 4});
  const auto loss = [&](const Variable<double>& in) { return 0.5 * (mse_loss(in, zeros) + l1_loss(in, zeros) * 3) / 4; };
  CHECK(loss({x}).mean() ==
        Approx((mse_loss(Variable<double>(x), zeros).mean() + 3 * l1_loss(Variable<double>(x), zeros).mean()) / 8));
  CHECK((loss({x}).target_weight == 12 && loss({x}).nominal_targets == 12));
  expect_passed(check_gradients([&](const Inputs& in) { return loss(in[0]).sum; }, {x}));
}

TEST_CASE("a penalty is added to the mean of a loss") {
  const auto x = random({3, 4}, 1);
  const auto logits = random({3, 5}, 2);
  const auto labels = Tensor<std::int32_t>::from({3}, {4, -100, 0});
  const auto loss = [&](const Inputs& in) { return cross_entropy(in[0], labels) + 0.1 * sum(square(in[1])); };
  const double squares = sum(square(Variable<double>(x))).value().item();
  CHECK(loss({logits, x}).mean() == Approx(cross_entropy(Variable<double>(logits), labels).mean() + 0.1 * squares));
  CHECK((loss({logits, x}).target_weight.item() == 2 && loss({logits, x}).nominal_targets == 3));
  expect_passed(check_gradients([&](const Inputs& in) { return loss(in).sum; }, {logits, x}));
  CHECK_THROWS_WITH(cross_entropy(Variable<double>(logits), labels) + Variable<double>(x),
                    "add: a Variable that is added to a loss needs one element, not shape [3, 4]");
  const auto half = mse_loss(Variable<float>(Tensor<float>::full({2}, 1)), Tensor<float>::zeros({2})) +
                    Variable<bfloat16>(Tensor<bfloat16>::full({1}, bfloat16(0.5F)));
  CHECK(half.mean() == 1.5);
}

TEST_CASE("gradients of dropout") {
  expect_passed(check_gradients([](const Inputs& in) { return dropout(in[0], 0.3, "layer"); }, {random({4, 9}, 1)},
                                {.tape = {.seed = 5, .step = 2}}));
}

TEST_CASE("the check sees a wrong gradient") {
  const auto wrong = [](const Inputs& in) {
    Tensor<double> y(in[0].shape());
    ops::multiply(in[0].value(), in[0].value(), y);
    return record(tests::BackwardFunction{"wrong square", [](const auto& dy, const auto& dx) { dx.give(dy); }},
                  Result<double>{.existing = y}, in[0]);
  };
  CHECK_FALSE(check_gradients(wrong, {random({3}, 1)}).passed);
}
