// Every module with every policy: a module that uses an operation which a type lacks does not link.

#include <algorithm>
#include <tuple>
#include <vector>

#include "catch.hpp"
#include "trireme/autograd/record.hpp"
#include "trireme/nn/attention/attention.hpp"
#include "trireme/nn/attention/transformer.hpp"
#include "trireme/nn/convolution/convolution.hpp"
#include "trireme/nn/layers/layers.hpp"
#include "trireme/nn/norm/normalization.hpp"
#include "trireme/nn/recurrent/recurrent.hpp"

using namespace trireme;

namespace {

template <typename P>
struct SequenceModules : nn::Module<P> {
  using M = typename P::Master;
  static constexpr nn::TransformerOptions block_options{.heads = 2, .width = 16, .dropout = 0.1, .attention_dropout = 0.1};

  nn::Embedding<P> embedding{*this, "embedding", {.rows = 11, .width = 16}};
  nn::Lstm<P> lstm{*this, "lstm", {.in = 16, .hidden = 8, .bidirectional = true}};
  nn::Gru<P> gru{*this, "gru", {.in = 16, .hidden = 8, .layers = 2, .bidirectional = true, .dropout = 0.1}};
  nn::RmsNorm<P> rms_norm{*this, "rms_norm", {.width = 16}};
  nn::MultiheadAttention<P> attention{
      *this, "attention", {.embed_dim = 16, .num_heads = 4, .num_kv_heads = 2, .rotary_base = 100}};
  nn::RmsNorm<P> next_rms_norm{*this, "next_rms_norm", {.width = 16}};
  nn::Linear<P> linear{*this, "linear", {.in = 16, .out = 16}};
  nn::TransformerBlock<P> block{*this, "block", block_options};
  nn::LayerNorm<P> last_norm{*this, "last_norm", {.width = 16}};
  nn::Dropout<P> dropout{*this, "dropout", 0.1};
  nn::Linear<P> head{*this, "head", {.in = 16, .out = 11, .bias = false}};

  Loss<M> loss() const {
    Tensor<std::int32_t> tokens({3, 7});
    for (std::int64_t i = 0; i < tokens.numel(); ++i) tokens.data()[i] = static_cast<std::int32_t>(i * 5 % 11);
    const auto padding = Tensor<std::int32_t>::zeros({3, 7});
    padding.data()[6] = 1;
    const auto recurrent = gru.forward(lstm.forward(embedding.forward(tokens)).out).out;
    const auto attended = attention.forward(rms_norm.forward(recurrent), padding);
    const auto [stream, normalized] = next_rms_norm.add_and_normalize(recurrent, attended);
    const auto y = block.forward({.stream = stream, .pending = linear.forward(normalized)}, tokens.dim(1));
    return cross_entropy(head.forward(dropout.forward(last_norm.forward(y))), tokens);
  }
};

template <typename P>
struct ImageModules : nn::Module<P> {
  using T = typename P::Compute;
  using M = typename P::Master;

  nn::Conv2d<P> down{*this, "down", {.in = 3, .out = 8, .kernel = 3, .stride = 2, .padding = 1, .bias = false}};
  nn::BatchNorm2d<P> batch_norm{*this, "batch_norm", {.channels = 8}};
  nn::ConvTranspose2d<P> up{*this, "up", {.in = 8, .out = 6, .kernel = 4, .stride = 2, .padding = 1}};
  nn::GroupNorm<P> group_norm{*this, "group_norm", {.groups = 2, .channels = 6}};

  Loss<M> loss() const {
    Tensor<T> images({2, 6, 6, 3});
    for (std::int64_t i = 0; i < images.numel(); ++i) images.data()[i] = static_cast<T>(static_cast<float>(i * 7 % 17 - 8) / 8);
    Tensor<std::int32_t> targets({2, 6, 6});
    for (std::int64_t i = 0; i < targets.numel(); ++i) targets.data()[i] = static_cast<std::int32_t>(i * 5 % 6);
    const auto y = tanh(batch_norm.forward(down.forward(Variable<T>(images))));
    return cross_entropy(group_norm.forward(up.forward(y)), targets);
  }
};

template <typename P>
constexpr double rounding = std::is_same_v<P, Float32>        ? 0x1p-24
                            : std::is_same_v<P, MixedFloat16> ? 0x1p-11
                                                              : 0x1p-8;

template <template <typename> typename Model, typename P>
void compare_with_double() {
  const auto run = [](auto& model) {
    model.initialize({.seed = 3});
    Tape tape({.seed = 4});
    auto loss = model.loss();
    loss.scale = 1024;  // float16 loses small gradients
    loss.backward();
    return loss.mean();
  };
  Model<P> model;
  Model<Float64> wide;
  const double loss = run(model);
  const double wanted = run(wide);
  CHECK(std::abs(loss - wanted) <= 8 * rounding<P> * wanted);
  for (int index = 0; index < wide.store().num_parameters(); ++index) {
    CAPTURE(wide.store().parameter(index).name);
    const Tensor<double> expected = wide.store().template gradient<double>(index);
    const Tensor<float> got = model.store().template gradient<float>(index);
    double largest = 0;
    double worst = 0;
    for (std::int64_t i = 0; i < expected.numel(); ++i) {
      largest = std::max(largest, std::abs(expected.data()[i]));
      worst = std::max(worst, std::abs(static_cast<double>(got.data()[i]) - expected.data()[i]));
    }
    CHECK(largest > 0);
    CHECK(worst <= 40 * rounding<P> * largest);  // as many results are rounded, forward and backward
  }
}

}  // namespace

TEMPLATE_TEST_CASE("every module runs and learns with every policy", "", Float32, MixedBfloat16, MixedFloat16) {
  compare_with_double<SequenceModules, TestType>();
  compare_with_double<ImageModules, TestType>();
}

TEMPLATE_TEST_CASE("an MLP gives the bits of its layers, one after the other", "", Float32, Float64, MixedBfloat16,
                   MixedFloat16) {
  using P = TestType;
  using T = typename P::Compute;
  struct : nn::Module<P> {
    nn::TransformerMlp<P> mlp{*this, "mlp", {.width = 12, .weight_deviation = 0.5, .projection_deviation = 0.5}};
  } model;
  model.initialize({.seed = 3});
  Tensor<T> input({2, 5, 12});
  for (std::int64_t i = 0; i < input.numel(); ++i) input.data()[i] = static_cast<T>(static_cast<float>(i * 7 % 23) / 11 - 1);
  const auto pass = [&](bool whole, bool split) {
    std::vector<double> result;
    const auto keep = [&](const auto& tensor) {
      for (const auto element : tensor.span()) result.push_back(static_cast<double>(element));
    };
    Tape tape;
    if (split) tape.split_backward();
    const auto x = watch(input, keep);
    const auto& [c_fc, c_proj, dropout] = std::tie(model.mlp.c_fc, model.mlp.c_proj, model.mlp.dropout);
    const auto y = whole ? model.mlp.forward(x) : c_proj.forward(gelu(c_fc.forward(x)));
    keep(y.value());
    y.backward();
    if (split) tape.run_weight_gradients();
    keep(model.store().template gradients<typename P::Gradient>());
    model.store().clear_gradients();
    return result;
  };
  const std::vector<double> wanted = pass(false, false);
  CHECK(std::ranges::count(wanted, 0.0) < std::ssize(wanted) / 10);
  CHECK(pass(true, false) == wanted);
  CHECK(pass(true, true) == wanted);
}

TEMPLATE_TEST_CASE("an empty batch overwrites the gradients of the step before with zeros", "", Float32, Float64, MixedBfloat16,
                   MixedFloat16) {
  using P = TestType;
  struct : nn::Module<P> {
    nn::Conv2d<P> conv{*this, "conv", {.in = 3, .out = 4, .kernel = 3}};
    nn::ConvTranspose2d<P> up{*this, "up", {.in = 4, .out = 5, .kernel = 2}};
    nn::Linear<P> linear{*this, "linear", {.in = 5, .out = 6}};
  } model;
  model.initialize({.seed = 3});
  const auto largest_gradients = [&](std::int64_t batch) {
    Tape tape;
    const auto images = Tensor<typename P::Compute>::full({batch, 4, 4, 3}, typename P::Compute(0.5F));
    const auto y = model.linear.forward(model.up.forward(model.conv.forward({images})));
    auto loss = cross_entropy(y, Tensor<std::int32_t>::zeros({batch, 3, 3}));
    loss.nominal_targets = 18;
    loss.backward();
    std::vector<double> largest;
    for (int index = 0; index < model.store().num_parameters(); ++index) {
      double of_parameter = 0;
      for (const auto element : model.store().template gradient<typename P::Gradient>(index).span()) {
        of_parameter = std::max(of_parameter, std::abs(static_cast<double>(element)));
      }
      largest.push_back(of_parameter);
    }
    model.store().clear_gradients();
    return largest;
  };
  for (const double largest : largest_gradients(2)) CHECK(largest > 0);
  CHECK(largest_gradients(0) == std::vector<double>(6, 0.0));
}
