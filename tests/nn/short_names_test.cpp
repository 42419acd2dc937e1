// Inside a module, layers have short names: the same layers, the same numbers.
#include <algorithm>
#include <type_traits>
#include <vector>

#include "catch.hpp"
#include "trireme/core/bfloat16.hpp"
#include "trireme/data/text/token_batch.hpp"
#include "trireme/nn/attention/attention.hpp"
#include "trireme/nn/attention/encoder_layer.hpp"
#include "trireme/nn/attention/transformer.hpp"
#include "trireme/nn/base/module_list.hpp"
#include "trireme/nn/base/sequential.hpp"
#include "trireme/nn/convolution/convolution.hpp"
#include "trireme/nn/experts/experts.hpp"
#include "trireme/nn/layers/gated.hpp"
#include "trireme/nn/layers/token_layers.hpp"
#include "trireme/nn/layers/upsampling.hpp"
#include "trireme/nn/norm/normalization.hpp"
#include "trireme/nn/norm/normalized_weights.hpp"
#include "trireme/nn/recurrent/recurrent.hpp"
#include "trireme/nn/staged/staged.hpp"
#include "trireme/optim/lookahead.hpp"
#include "trireme/optim/moving_average.hpp"
#include "trireme/optim/optimizers.hpp"
#include "trireme/optim/schedule_free_adamw.hpp"
#include "trireme/optim/sharpness_aware.hpp"
#include "trireme/optim/summary.hpp"

using namespace trireme;

namespace {

template <typename P, typename D>
struct Names : nn::Module<P, D> {
  using Module = nn::Module<P, D>;
  template <typename Short, typename Long>
  static constexpr bool same = std::is_same_v<Short, Long>;
  static_assert(same<typename Module::Value, Variable<typename P::Compute, D>>);
  static_assert(same<typename Module::Stream, Variable<typename P::Master, D>>);
  static_assert(same<typename Module::BatchNorm1d, nn::BatchNorm1d<P, D>>);
  static_assert(same<typename Module::BatchNorm2d, nn::BatchNorm2d<P, D>>);
  static_assert(same<typename Module::Carried, nn::Carried<P, D>>);
  static_assert(same<typename Module::CausalSelfAttention, nn::CausalSelfAttention<P, D>>);
  static_assert(same<typename Module::Conv1d, nn::Conv1d<P, D>>);
  static_assert(same<typename Module::Conv2d, nn::Conv2d<P, D>>);
  static_assert(same<typename Module::Conv3d, nn::Conv3d<P, D>>);
  static_assert(same<typename Module::ConvTranspose1d, nn::ConvTranspose1d<P, D>>);
  static_assert(same<typename Module::ConvTranspose2d, nn::ConvTranspose2d<P, D>>);
  static_assert(same<typename Module::Dropout, nn::Dropout<P, D>>);
  static_assert(same<typename Module::DropPath, nn::DropPath<P, D>>);
  static_assert(same<typename Module::Embedding, nn::Embedding<P, D>>);
  static_assert(same<typename Module::GatedMlp, nn::GatedMlp<P, D>>);
  static_assert(same<typename Module::GroupNorm, nn::GroupNorm<P, D>>);
  static_assert(same<typename Module::Gru, nn::Gru<P, D>>);
  static_assert(same<typename Module::InstanceNorm1d, nn::InstanceNorm1d<P, D>>);
  static_assert(same<typename Module::InstanceNorm2d, nn::InstanceNorm2d<P, D>>);
  static_assert(same<typename Module::LayerNorm, nn::LayerNorm<P, D>>);
  static_assert(same<typename Module::Linear, nn::Linear<P, D>>);
  static_assert(same<typename Module::Lstm, nn::Lstm<P, D>>);
  static_assert(same<typename Module::MixtureOfExperts, nn::MixtureOfExperts<P, D>>);
  static_assert(same<typename Module::MultiheadAttention, nn::MultiheadAttention<P, D>>);
  static_assert(same<typename Module::PixelShuffle, nn::PixelShuffle<P, D>>);
  static_assert(same<typename Module::PRelu, nn::PRelu<P, D>>);
  static_assert(same<typename Module::Residual, nn::Residual<P, D>>);
  static_assert(same<typename Module::RmsNorm, nn::RmsNorm<P, D>>);
  static_assert(same<typename Module::Sequential, nn::Sequential<P, D>>);
  static_assert(same<typename Module::SpectralNormConv2d, nn::SpectralNormConv2d<P, D>>);
  static_assert(same<typename Module::SpectralNormLinear, nn::SpectralNormLinear<P, D>>);
  static_assert(same<typename Module::TokenEmbedding, nn::TokenEmbedding<P, D>>);
  static_assert(same<typename Module::TokenLogits, nn::TokenLogits<P, D>>);
  static_assert(same<typename Module::TransformerBlock, nn::TransformerBlock<P, D>>);
  static_assert(same<typename Module::TransformerEncoderLayer, nn::TransformerEncoderLayer<P, D>>);
  static_assert(same<typename Module::TransformerMlp, nn::TransformerMlp<P, D>>);
  static_assert(same<typename Module::Upsample, nn::Upsample<P, D>>);
  static_assert(same<typename Module::WeightNormConv1d, nn::WeightNormConv1d<P, D>>);
  static_assert(same<typename Module::WeightNormLinear, nn::WeightNormLinear<P, D>>);
  // In a layer of the library too.
  static_assert(same<typename nn::TransformerBlock<P, D>::Linear, nn::Linear<P, D>>);
};
template struct Names<Float32, Cpu>;
template struct Names<MixedBfloat16, Cpu>;
template struct Names<MixedFloat16, Cuda>;

using Batch = data::TokenBatch;

// The program of a new user, and the same without short names.
template <typename P>
struct Programs {
  struct ShortBlock : nn::Module<P> {
    using Base = nn::Module<P>;
    using Base::Base;
    using typename Base::CausalSelfAttention;
    using typename Base::LayerNorm;
    using typename Base::Linear;
    using typename Base::Stream;
    using typename Base::Value;
    Stream forward(const Stream& x, const Batch& batch) const {
      const Value y = norm.forward(x);
      const Stream attended = x + attention.forward(y, batch.time());  // first, as in the long form
      return attended + down.forward(gelu(up.forward(y)));
    }
    LayerNorm norm{*this, "norm", {.width = 16}};
    CausalSelfAttention attention{*this, "attention", {.heads = 2, .width = 16}};
    Linear up{*this, "up", {.in = 16, .out = 32}};
    Linear down{*this, "down", {.in = 32, .out = 16}};
  };
  struct LongBlock : nn::Module<P> {
    LongBlock(const nn::Module<P>& parent, std::string_view name) : nn::Module<P>(parent, name) {}
    Variable<float> forward(const Variable<float>& x, const Batch& batch) const {
      const Variable<typename P::Compute> y = norm.forward(x);
      const auto attended = add(x, cast<float>(attention.forward(y, batch.time())));
      return add(attended, cast<float>(down.forward(gelu(up.forward(y)))));
    }
    nn::LayerNorm<P> norm{*this, "norm", {.width = 16}};
    nn::CausalSelfAttention<P> attention{*this, "attention", {.heads = 2, .width = 16}};
    nn::Linear<P> up{*this, "up", {.in = 16, .out = 32}};
    nn::Linear<P> down{*this, "down", {.in = 32, .out = 16}};
  };
};

template <typename P, typename Block>
struct Net : nn::Staged<P, Cpu, Batch> {
  explicit Net(const ModelContext& context = {}) : nn::Staged<P, Cpu, Batch>(context) {
    this->layers(embed, blocks, nn::chain(norm, output));
  }
  Loss<float> loss(const Variable<typename P::Compute>& y, const Batch& batch) const { return output.loss(y, batch.targets); }
  nn::TokenEmbedding<P> embed{*this, "embed", {.vocabulary = 11, .positions = 8, .width = 16}};
  nn::ModuleList<Block> blocks{*this, "block", 2};
  nn::LayerNorm<P> norm{*this, "norm", {.width = 16}};
  nn::TokenLogits<P> output{*this, "output", embed.tokens};
};

Batch batch_of_tokens() {
  Tensor<std::int32_t> tokens({3, 7});
  for (std::int64_t at = 0; at < tokens.numel(); ++at) tokens.data()[at] = static_cast<std::int32_t>(at * 5 % 11);
  return {.tokens = tokens, .targets = tokens};
}

// Values after three steps.
template <typename Model>
std::vector<float> trained(Model& model, const auto& loss) {
  model.initialize({.seed = 3});
  optim::AdamW optimizer(model, {.learning_rate = 0.01});
  for (std::uint64_t step = 0; step < 3; ++step) {
    Tape tape({.seed = 1, .step = step});
    const auto of_step = loss(model);
    of_step.backward();
    optimizer.step(optim::summarize(model.store(), of_step));
  }
  const auto values = model.store().template values<float>().span();
  return {values.begin(), values.end()};
}

// Every layer, by its short name, in a class that is no template.
struct EveryLayer : nn::Module<MixedBfloat16> {
  using Module::Module;

  Embedding embedding{*this, "embedding", {.rows = 11, .width = 16}};
  Lstm lstm{*this, "lstm", {.in = 16, .hidden = 8, .bidirectional = true}};
  Gru gru{*this, "gru", {.in = 16, .hidden = 16}};
  RmsNorm rms_norm{*this, "rms_norm", {.width = 16}};
  MultiheadAttention attention{*this, "attention", {.embed_dim = 16, .num_heads = 4}};
  LayerNorm norm{*this, "norm", {.width = 16}};
  TransformerMlp mlp{*this, "mlp", {.width = 16}};
  TransformerBlock block{*this, "block", {.heads = 2, .width = 16}};
  Dropout dropout{*this, "dropout", 0.1};
  Conv2d down{*this, "down", {.in = 3, .out = 8, .kernel = 3}};
  BatchNorm2d batch_norm{*this, "batch_norm", {.channels = 8}};
  BatchNorm1d of_rows{*this, "of_rows", {.channels = 16}};
  ConvTranspose2d up{*this, "up", {.in = 8, .out = 6, .kernel = 4}};
  GroupNorm group_norm{*this, "group_norm", {.groups = 2, .channels = 6}};
  TokenEmbedding tokens{*this, "tokens", {.vocabulary = 11, .positions = 8, .width = 16}};
  TokenLogits logits{*this, "logits", tokens.tokens};
  Sequential sequential{*this, "sequential"};
  Carried carried{*this, "carried", {16}};
  nn::ModuleList<Linear> towers{*this, "tower", 2, nn::LinearOptions{.in = 16, .out = 16}};

  Stream forward(const Tensor<std::int32_t>& of) const {
    const Stream x = gru.forward(lstm.forward(embedding.forward(of)).out).out;
    const Residual y{.stream = x + attention.forward(rms_norm.forward(x)), .pending = {}};
    return block.forward(y, of.dim(1)).settled().stream;
  }
  Value head(const Stream& x) const { return towers[1].forward(towers[0].forward(norm.forward(x))); }
};

struct Table : nn::Module<Float32> {
  using Module::Module;
  Value forward(const Value& x) const { return output.forward(relu(hidden.forward(x))); }
  Linear hidden{*this, "hidden", {.in = 4, .out = 64}};
  Linear output{*this, "output", {.in = 64, .out = 3}};
};
struct TwoTables : nn::Module<Float32> {
  using Module::Module;
  Table first{*this, "first"};
  nn::ModuleList<Table> more{*this, "more", 2};
};

}  // namespace

TEMPLATE_TEST_CASE("a transformer in short forms is the one in long forms, bit by bit", "", Float32, MixedBfloat16,
                   MixedFloat16) {
  using P = TestType;
  const Batch batch = batch_of_tokens();
  const auto loss = [&](const auto& model) { return model.loss(model.forward(batch), batch); };
  Net<P, typename Programs<P>::ShortBlock> in_short;
  Net<P, typename Programs<P>::LongBlock> in_long;
  const auto values = trained(in_short, loss);
  CHECK(values == trained(in_long, loss));
  CHECK(std::ranges::none_of(values, [](float value) { return std::isnan(value); }));
  CHECK(in_short.store().find("block.1.attention.c_attn.weight") >= 0);
}

TEST_CASE("every layer has a short name inside a module") {
  EveryLayer model;
  model.initialize({.seed = 3});
  CHECK(model.store().find("lstm.weight_ih_l0_reverse") >= 0);
  CHECK(model.store().find("tower.1.bias") >= 0);
  const auto tokens = batch_of_tokens().tokens;
  const auto y = model.head(model.forward(tokens));
  CHECK(y.shape() == Shape{3, 7, 16});
  CHECK(std::ranges::none_of(y.value().span(), [](float value) { return std::isnan(value); }));
}

TEST_CASE("using Module::Module gives a class both places: a root, and a module within others") {
  ModelContext context;
  context.seed = 5;
  Table root;
  Table seeded(context);
  TwoTables within(context);
  CHECK(root.context().seed == 1);
  CHECK(seeded.context().seed == 5);
  CHECK(within.store().find("first.hidden.weight") >= 0);
  CHECK(within.store().find("more.1.output.bias") >= 0);
  within.initialize();
  CHECK(within.more[0].forward(Tensor<float>::zeros({2, 4})).shape() == Shape{2, 3});
}

TEST_CASE("an optimizer takes its template arguments from the model") {
  Table net;
  net.initialize();
  const Table& constant = net;
  optim::AdamW plain(net);
  optim::AdamW adamw(constant, {.weight_decay = 0.1});
  optim::AdamW8bit adamw_8bit(net, {.min_8bit_size = 1});
  optim::Adam adam(net, {.beta1 = 0.8});
  optim::Sgd sgd(net, {.momentum = 0.9});
  optim::Rmsprop rmsprop(net);
  optim::Adagrad adagrad(net);
  optim::Lamb lamb(net);
  optim::Lars lars(net);
  optim::Lion lion{net, {.beta1 = 0.8}};
  optim::Nadam nadam(net);
  optim::Radam radam(net);
  optim::Adadelta adadelta(net);
  optim::Muon muon(net, {.momentum = 0.9});
  optim::Adafactor adafactor(net);
  optim::ScheduleFreeAdamW schedule_free(net, {.warmup = 3});
  optim::Lookahead lookahead(net, lion, {.interval = 2});
  optim::SharpnessAware sharpness(net);
  optim::ExponentialMovingAverage average(net, {.decay = 0.9});
  STATIC_REQUIRE(std::is_same_v<decltype(plain), optim::AdamW<Float32, Cpu>>);
  STATIC_REQUIRE(std::is_same_v<decltype(adamw), optim::AdamW<Float32, Cpu>>);
  STATIC_REQUIRE(std::is_same_v<decltype(adam), optim::Adam<Float32, Cpu>>);
  STATIC_REQUIRE(std::is_same_v<decltype(sgd), optim::Sgd<Float32, Cpu>>);
  STATIC_REQUIRE(std::is_same_v<decltype(lion), optim::Lion<Float32, Cpu>>);
  STATIC_REQUIRE(std::is_same_v<decltype(average), optim::ExponentialMovingAverage<Float32, Cpu>>);
  const auto setting = [](const optim::AnyOptimizer& optimizer, const std::string& wanted) {
    for (const auto& [name, value] : optimizer.settings()) {
      if (name == wanted) return value;
    }
    return std::string("no such setting");
  };
  CHECK(setting(plain, "weight_decay") == "0.01");
  CHECK(setting(adamw, "weight_decay") == "0.1");
  CHECK(setting(adamw_8bit, "min_8bit_size") == "1");
  CHECK(setting(adam, "optimizer") == "Adam");
  CHECK(setting(adam, "beta1") == "0.8");
  CHECK(setting(lion, "optimizer") == "Lion");
  CHECK(setting(lookahead, "optimizer") == "Lion");
  CHECK(setting(nadam, "optimizer") == "NAdam");
  CHECK(setting(radam, "optimizer") == "RAdam");
  CHECK(setting(adadelta, "optimizer") == "Adadelta");
  CHECK(setting(muon, "momentum") == "0.9");
  CHECK(setting(adafactor, "optimizer") == "Adafactor");
  CHECK(setting(schedule_free, "warmup") == "3");
  STATIC_REQUIRE(std::is_same_v<decltype(sharpness), optim::SharpnessAware<Float32, Cpu>>);
  CHECK(setting(lamb, "optimizer") == "LAMB");

  EveryLayer mixed;
  optim::AdamW of_mixed(mixed);
  STATIC_REQUIRE(std::is_same_v<decltype(of_mixed), optim::AdamW<MixedBfloat16, Cpu>>);
  CHECK_THROWS_WITH(optim::AdamW(net.hidden), ContainsSubstring("hidden is a module within a model"));
}
