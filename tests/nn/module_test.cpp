#include "trireme/nn/base/module.hpp"

#include <algorithm>
#include <utility>

#include "gradient_check.hpp"
#include "trireme/autograd/frozen_parameters.hpp"
#include "trireme/core/philox.hpp"
#include "trireme/models/architectures/gpt.hpp"
#include "trireme/nn/attention/attention.hpp"
#include "trireme/nn/convolution/convolution.hpp"
#include "trireme/nn/layers/gated.hpp"
#include "trireme/nn/norm/normalization.hpp"
#include "trireme/nn/recurrent/recurrent.hpp"
#include "trireme/optim/sgd.hpp"
#include "trireme/optim/summary.hpp"

using namespace trireme;
using namespace trireme::tests;

namespace {

struct Mlp : nn::Module<Float64> {
  nn::Linear<Float64> hidden{*this, "hidden", {.in = 3, .out = 5}};
  nn::LayerNorm<Float64> norm{*this, "norm", {.width = 5}};
  nn::Linear<Float64> output{*this, "output", {.in = 5, .out = 2, .bias = false}};
  Variable<double> forward(const Variable<double>& x) const { return output.forward(norm.forward(tanh(hidden.forward(x)))); }
};

Tensor<std::int32_t> tokens_of(const Shape& shape, std::int32_t vocabulary) {
  Tensor<std::int32_t> tokens(shape);
  for (std::int64_t index = 0; index < tokens.numel(); ++index) {
    tokens.data()[index] = static_cast<std::int32_t>((index * 7 + 3) % vocabulary);
  }
  return tokens;
}

}  // namespace

TEST_CASE("a model's parameters have dotted names") {
  Mlp model;
  CHECK(model.store().num_parameters() == 5);
  CHECK(model.hidden.weight.info().name == "hidden.weight");
  CHECK(model.norm.bias.info().name == "norm.bias");
  CHECK(model.output.weight.info().shape == Shape{2, 5});
  CHECK_FALSE(model.output.bias.defined());
  CHECK_THROWS_AS((nn::Linear<Float64>(model, "broken", {.in = 0, .out = 3})), Error);
}

TEST_CASE("an embedding's padding row is zero at first and gets no gradient, as torch's") {
  struct Table : nn::Module<Float64> {
    explicit Table(std::optional<std::int32_t> padding)
        : table(*this, "table", {.rows = 4, .width = 2, .padding_idx = padding}) {}
    nn::Embedding<Float64> table;
  };
  Table none(std::nullopt);
  none.initialize({.seed = 3});
  const auto all = none.table.weight.value().clone();
  CHECK(std::ranges::none_of(all.span(), [](double value) { return value == 0; }));
  for (const std::int32_t padding : {0, 1, -1, -4}) {
    CAPTURE(padding);
    const std::int64_t row = padding < 0 ? padding + 4 : padding;
    Table model(padding);
    model.initialize({.seed = 3});
    const auto& weight = model.table.weight;
    for (std::int64_t at = 0; at < 8; ++at) CHECK(weight.value().data()[at] == (at / 2 == row ? 0 : all.data()[at]));
    Tape tape;
    sum(model.table.forward(Tensor<std::int32_t>::from({4}, std::vector<std::int32_t>{0, 1, 2, 3}))).backward();
    for (std::int64_t at = 0; at < 8; ++at) CHECK(weight.gradient().data()[at] == (at / 2 == row ? 0 : 1));
  }
  CHECK_THROWS_WITH(Table(4), ContainsSubstring("padding_idx is 4, but must lie in [-4, 4)"));
  CHECK_THROWS_AS(Table(-5), Error);
}

namespace {

struct Backbone : nn::Module<Float32> {
  Backbone(const nn::Module<Float32>& parent, std::string_view name) : Module(parent, name) {}
  nn::Linear<Float32> fc{*this, "fc", {.in = 3, .out = 4}};
  nn::BatchNorm1d<Float32> norm{*this, "norm", {.channels = 4}};
  Variable<float> forward(const Variable<float>& x) const { return norm.forward_relu(fc.forward(x)); }
};

struct Head : nn::Module<Float32> {
  Head(const nn::Module<Float32>& parent, std::string_view name) : Module(parent, name) {}
  nn::Dropout<Float32> dropout{*this, "dropout", 0.5};
  nn::Linear<Float32> fc{*this, "fc", {.in = 4, .out = 2}};
  Variable<float> forward(const Variable<float>& x) const { return fc.forward(dropout.forward(x)); }
};

struct Classifier : nn::Module<Float32> {
  Backbone backbone{*this, "backbone"};
  Head head{*this, "head"};
  nn::Linear<Float32> headless{*this, "headless", {.in = 1, .out = 1}};
  Variable<float> forward(const Variable<float>& x) const { return head.forward(backbone.forward(x)); }
};

std::vector<float> values_of(FlatStore& store, std::string_view module) {
  std::vector<float> all;
  const auto append = [&](const Tensor<float>& values) { all.insert(all.end(), values.span().begin(), values.span().end()); };
  for (int index = 0; index < store.num_parameters(); ++index) {
    if (is_within(module, store.parameter(index).name)) append(store.read_values<float>(index));
  }
  for (int index = 0; index < store.buffers().size(); ++index) {
    if (is_within(module, store.buffers().info(index).name)) append(store.buffers().read_values<float>(index));
  }
  return all;
}

Tensor<float> normal_rows(std::int64_t rows, std::int64_t width) {
  Tensor<float> x({rows, width});
  for (std::int64_t index = 0; index < x.numel(); ++index) {
    x.data()[index] = static_cast<float>(philox_normal(1, 1, static_cast<std::uint64_t>(index)));
  }
  return x;
}

void train_step(const Classifier& model, optim::Optimizer<Float32>& optimizer, std::uint64_t step) {
  Tape tape({.seed = 1, .step = step});
  const auto loss = mse_loss(model.forward(Variable<float>(normal_rows(6, 3))), Tensor<float>::full({6, 2}, 1));
  loss.backward();
  optimizer.step(optim::summarize(model.store(), loss));
}

}  // namespace

TEST_CASE("a module initializes itself and what lies within it, with the values of a whole initialization") {
  Classifier whole;
  whole.initialize({.seed = 2});
  Classifier model;
  model.head.initialize({.seed = 2});
  CHECK(values_of(model.store(), "head") == values_of(whole.store(), "head"));
  for (const float value : values_of(model.store(), "headless")) CHECK(value == 0);
  const auto untouched = values_of(model.store(), "backbone");
  CHECK(std::ranges::count(untouched, 0.0F) == std::ssize(untouched) - 4);  // all but the running variance of norm

  model.backbone.norm.running_mean.value().data()[2] = 7;
  model.backbone.fc.initialize({.seed = 2});
  CHECK(model.backbone.norm.running_mean.value().data()[2] == 7);
  model.backbone.initialize({.seed = 2});
  model.headless.initialize({.seed = 2});
  CHECK(values_of(model.store(), "") == values_of(whole.store(), ""));
}

TEST_CASE("the seed of initial values is the context's unless another is given") {
  struct Net : nn::Module<Float32> {
    using nn::Module<Float32>::Module;
    nn::Linear<Float32> fc{*this, "fc", {.in = 3, .out = 4}};
  };
  const auto values = [](const ModelContext& context, const nn::InitializeOptions& options) {
    Net net(context);
    net.initialize(options);
    return values_of(net.store(), "");
  };
  CHECK(values({}, {}) == values({}, {.seed = 1}));
  CHECK(values({.seed = 5}, {}) == values({}, {.seed = 5}));
  CHECK(values({.seed = 5}, {}) != values({}, {}));
  CHECK(values({.seed = 5}, {.seed = 0}) == values({}, {.seed = 0}));
  CHECK(values({}, {.seed = 0}) != values({}, {}));
}

TEST_CASE("the root stands for its model, a module within it does not") {
  const Classifier model;
  Model& whole = model;
  CHECK(&whole == &model.model());
  CHECK(&model.backbone.norm.model() == &whole);
  CHECK_THROWS_WITH(optim::Sgd<Float32>(model.backbone, {}),
                    ContainsSubstring("backbone is a module within a model, not the whole model"));
}

TEST_CASE("a frozen module gets no gradients, the rest of the model does") {
  Classifier model;
  model.initialize();
  optim::Sgd<Float32> optimizer(model, {.learning_rate = 0.1});
  const auto backbone = values_of(model.store(), "backbone.fc");
  const auto head = values_of(model.store(), "head");
  {
    const FrozenParameters frozen(model.backbone);
    train_step(model, optimizer, 0);
  }
  CHECK(values_of(model.store(), "backbone.fc") == backbone);
  CHECK(values_of(model.store(), "head") != head);
  train_step(model, optimizer, 1);
  CHECK(values_of(model.store(), "backbone.fc") != backbone);
}

TEST_CASE("training and evaluation are switched for a module and what lies within it") {
  Classifier model;
  const auto modes = [&] {
    return std::vector<bool>{model.training(), model.backbone.training(), model.backbone.norm.training(),
                             model.head.dropout.training(), model.headless.training()};
  };
  CHECK(modes() == std::vector<bool>{true, true, true, true, true});
  CHECK(model.model().modes().str().empty());
  model.backbone.eval();
  CHECK(modes() == std::vector<bool>{true, false, false, true, true});
  CHECK(model.model().modes().str() == "backbone in evaluation");
  model.backbone.norm.train();
  CHECK(modes() == std::vector<bool>{true, false, true, true, true});
  model.backbone.eval();
  model.head.eval();
  CHECK(modes() == std::vector<bool>{true, false, false, false, true});
  model.eval();
  CHECK(modes() == std::vector<bool>(5, false));
  CHECK(model.model().modes().str() == "evaluation");
  model.head.train();
  CHECK(modes() == std::vector<bool>{false, false, false, true, false});
  model.train();
  CHECK(modes() == std::vector<bool>(5, true));
  CHECK(model.model().modes().str().empty());
}

TEST_CASE("a new head is trained on a frozen, pretrained backbone") {
  Classifier pretrained;
  pretrained.initialize({.seed = 5});
  optim::Sgd<Float32> before(pretrained, {.learning_rate = 0.1});
  for (std::uint64_t step = 0; step < 2; ++step) train_step(pretrained, before, step);  // moves running statistics too

  Classifier model;
  for (const auto& parameter :
       {model.backbone.fc.weight, model.backbone.fc.bias, model.backbone.norm.weight, model.backbone.norm.bias}) {
    parameter.freeze();
  }
  FlatStore& store = model.store();
  for (int index = 0; index < store.num_parameters(); ++index) {
    const std::string& name = store.parameter(index).name;
    if (is_within("backbone", name)) {
      store.write_values(index, pretrained.store().read_values<float>(pretrained.store().find(name)));
    }
  }
  for (int index = 0; index < store.buffers().size(); ++index) {
    store.buffers().write_values(index, pretrained.store().buffers().read_values<float>(index));
  }
  model.head.initialize({.seed = 9});
  model.headless.initialize({.seed = 9});
  model.backbone.eval();
  const auto loaded = values_of(pretrained.store(), "backbone");
  CHECK(values_of(store, "backbone") == loaded);
  optim::Sgd<Float32> optimizer(model, {.learning_rate = 0.1});
  auto head = values_of(store, "head");
  for (std::uint64_t step = 0; step < 3; ++step) {
    train_step(model, optimizer, step);
    CHECK(values_of(store, "backbone") == loaded);
    const auto last = std::exchange(head, values_of(store, "head"));
    CHECK(head != last);
  }
}

TEST_CASE("what a layer refuses begins with its name, and the innermost layer counts") {
  struct Block : nn::Module<Float32> {
    using Module::Module;
    Linear linear{*this, "linear", {.in = 4, .out = 4}};
    LayerNorm norm{*this, "norm", {.width = 4}};
    RmsNorm rms{*this, "rms", {.width = 4}};
    Conv2d conv{*this, "conv", {.in = 4, .out = 4, .kernel = 3}};
    Conv1d conv1d{*this, "conv1d", {.in = 4, .out = 4, .kernel = 3}};
    BatchNorm2d batch_norm{*this, "batch_norm", {.channels = 4}};
    GroupNorm group_norm{*this, "group_norm", {.groups = 2, .channels = 4}};
    MultiheadAttention attention{*this, "attention", {.embed_dim = 4, .num_heads = 2}};
    GatedMlp mlp{*this, "mlp", {.width = 4, .hidden = 8}};
    Lstm lstm{*this, "lstm", {.in = 4, .hidden = 4}};
    Embedding table{*this, "table", {.rows = 3, .width = 4}};
  };
  struct Net : nn::Module<Float32> {
    Block encoder{*this, "encoder"};
  };
  Net net;
  net.initialize();
  const Block& block = net.encoder;
  const Variable<float> x(Tensor<float>::zeros({2, 3, 5}));
  const auto error_of = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const Error& error) {
      return error.what();
    }
    return "none";
  };
  using Catch::Matchers::StartsWith;
  CHECK_THAT(error_of([&] { block.linear.forward(x); }), StartsWith("encoder.linear: linear: x [2, 3, 5] does not fit"));
  CHECK_THAT(error_of([&] { block.norm.forward(x); }), StartsWith("encoder.norm: layer_norm: "));
  CHECK_THAT(error_of([&] { block.rms.forward(x); }), StartsWith("encoder.rms: rms_norm: "));
  CHECK_THAT(error_of([&] { block.conv.forward(x); }), StartsWith("encoder.conv: conv2d: "));
  CHECK_THAT(error_of([&] { block.conv1d.forward(x); }), StartsWith("encoder.conv1d: conv"));
  CHECK_THAT(error_of([&] { block.batch_norm.forward(x); }), StartsWith("encoder.batch_norm: batch_norm: "));
  CHECK_THAT(error_of([&] { block.group_norm.forward(x); }), StartsWith("encoder.group_norm: group_norm: "));
  CHECK_THAT(error_of([&] { block.attention.forward(x); }), StartsWith("encoder.attention: linear: "));
  CHECK_THAT(error_of([&] { block.mlp.forward(x); }), StartsWith("encoder.mlp.gate_proj: linear: "));
  CHECK_THAT(error_of([&] { block.lstm.forward(x); }), StartsWith("encoder.lstm: x has shape [2, 3, 5]"));  // named once
  CHECK_THAT(error_of([&] { block.table.forward(Tensor<std::int32_t>::full({1}, 7)); }),
             StartsWith("encoder.table: embedding: "));
}

TEST_CASE("the first step refuses a model without values, and names the part that has none") {
  const auto refusal = [](const Classifier& model) {
    optim::Sgd<Float32> optimizer(model, {.learning_rate = 0.1});
    try {
      train_step(model, optimizer, 0);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  Classifier nothing;
  const std::string all = refusal(nothing);
  CHECK_THAT(all, ContainsSubstring("no values: call initialize(), load weights or a checkpoint"));
  CHECK_THAT(all, ContainsSubstring("7 of the model's 8 parameters, the first of them backbone.fc.weight,"));
  Classifier part;
  part.head.initialize({.seed = 1});
  part.headless.initialize({.seed = 1});
  CHECK_THAT(refusal(part), ContainsSubstring("3 of the model's 8 parameters, the first of them backbone.fc.weight,"));
  Classifier initialized;
  initialized.initialize({.seed = 1});
  CHECK(refusal(initialized) == "no error");

  Classifier by_hand;
  std::ranges::fill(by_hand.store().values<float>().span(), 0.5F);
  CHECK(refusal(by_hand) == "no error");
  Classifier zeros;  // on purpose
  for (int index = 0; index < zeros.store().num_parameters(); ++index) {
    zeros.store().write_values(index, Tensor<float>::zeros(zeros.store().parameter(index).shape));
  }
  CHECK(refusal(zeros) == "no error");
  Classifier from_checkpoint;
  State state;
  from_checkpoint.store().add_to(state);
  state.loaded();
  CHECK(refusal(from_checkpoint) == "no error");
}

TEST_CASE("gradients of a small model's parameters") {
  Mlp model;
  model.initialize({.seed = 2});
  Tensor<double> x({4, 3});
  for (std::int64_t index = 0; index < x.numel(); ++index) {
    x.data()[index] = philox_normal(1, 1, static_cast<std::uint64_t>(index));
  }
  expect_passed(testing::check_parameter_gradients(model.store(), [&] { return model.forward(Variable<double>(x)); }));
}

TEST_CASE("gradients of a layer with RMS norm and grouped-query attention with rotary positions") {
  struct Layer : nn::Module<Float64> {
    nn::RmsNorm<Float64> norm{*this, "norm", {.width = 8}};
    nn::MultiheadAttention<Float64> attention{
        *this, "attention", {.embed_dim = 8, .num_heads = 4, .num_kv_heads = 2, .causal = true, .rotary_base = 100}};
  } layer;
  layer.initialize({.seed = 2});
  CHECK(layer.attention.in_proj_weight.info().shape == Shape{16, 8});
  Tensor<double> x({2, 5, 8});
  for (std::int64_t index = 0; index < x.numel(); ++index) {
    x.data()[index] = philox_normal(1, 1, static_cast<std::uint64_t>(index));
  }
  expect_passed(testing::check_parameter_gradients(
      layer.store(), [&] { return layer.attention.forward(layer.norm.forward(Variable<double>(x))); }));
}

TEST_CASE("gradients of a GPT's parameters, tied embedding and dropout included") {
  models::Gpt<Float64> model({.layers = 2, .heads = 2, .width = 8, .block = 6, .vocabulary = 11, .dropout = 0.2});
  model.initialize({.seed = 2});
  const auto tokens = tokens_of({2, 5}, 11);
  const auto targets = tokens_of({2, 5}, 10);
  expect_passed(testing::check_parameter_gradients(model.store(), [&] { return model.loss(tokens, targets).sum; },
                                                   {.tape = {.seed = 9, .step = 1}}));
}

TEST_CASE("a GPT's names are those of GPT-2, and its initial values do not depend on its depth") {
  models::Gpt<Float32> model({.layers = 2, .heads = 2, .width = 8, .block = 6, .vocabulary = 11});
  CHECK(model.store().find("transformer.h.1.attn.c_attn.weight") >= 0);
  CHECK(model.store().find("transformer.h.0.mlp.c_proj.bias") >= 0);
  CHECK(model.store().find("transformer.ln_f.weight") >= 0);
  CHECK(model.store().find("lm_head.weight") < 0);
  CHECK_THROWS_AS(models::Gpt<Float32>({.layers = 1, .heads = 3, .width = 8}), Error);
  const auto tokens = tokens_of({1, 7}, 11);
  CHECK_THROWS_AS(model.logits(tokens), Error);  // longer than block
}
