#include "trireme/nn/staged/staged.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "gradient_check.hpp"
#include "trireme/autograd/frozen_parameters.hpp"
#include "trireme/autograd/operations/pointwise.hpp"
#include "trireme/autograd/operations/reduce.hpp"
#include "trireme/data/text/token_batch.hpp"
#include "trireme/nn/layers/layers.hpp"
#include "trireme/nn/layers/token_layers.hpp"
#include "trireme/nn/norm/normalization.hpp"
#include "trireme/nn/norm/normalized_weights.hpp"
#include "trireme/nn/staged/layer_costs.hpp"

using namespace trireme;
using namespace trireme::tests;

namespace {

constexpr std::int64_t vocabulary = 11;
constexpr std::int64_t width = 6;

struct Block : nn::Module<Float32> {
  Block(const nn::Module<Float32>& parent, std::string_view name) : Module(parent, name) {}
  nn::LayerNorm<Float32> norm{*this, "norm", {.width = width}};
  nn::Linear<Float32> fc{*this, "fc", {.in = width, .out = width}};
  nn::Dropout<Float32> dropout{*this, "dropout", 0.2};
  Variable<float> forward(const Variable<float>& x) const { return add(x, dropout.forward(gelu(fc.forward(norm.forward(x))))); }
};

// Embedding, blocks, output layer.
struct Language : nn::Staged<Float32, Cpu, data::TokenBatch> {
  explicit Language(const ModelContext& context = {}) : Staged(context) { layers(embed, blocks, nn::chain(norm, output)); }
  Loss<float> loss(const Value& y, const data::TokenBatch& batch) const { return cross_entropy(y, batch.targets); }

  nn::TokenEmbedding<Float32> embed{*this, "embed", {.vocabulary = vocabulary, .positions = 8, .width = width}};
  nn::ModuleList<Block> blocks{*this, "block", 3};
  nn::LayerNorm<Float32> norm{*this, "norm", {.width = width}};
  nn::TokenLogits<Float32> output{*this, "output", embed.tokens};
};

data::TokenBatch token_batch() {
  data::TokenBatch batch{.tokens = Tensor<std::int32_t>({2, 5}), .targets = Tensor<std::int32_t>({2, 5})};
  for (std::int64_t index = 0; index < batch.tokens.numel(); ++index) {
    batch.tokens.data()[index] = static_cast<std::int32_t>((index * 7 + 3) % vocabulary);
    batch.targets.data()[index] = static_cast<std::int32_t>((index * 5 + 1) % vocabulary);
  }
  return batch;
}

std::vector<float> gradients_of(FlatStore& store) {
  std::vector<float> all;
  for (int index = 0; index < store.num_parameters(); ++index) {
    REQUIRE(store.has_gradient(index));
    const auto gradient = elements(store.gradient<float>(index));
    all.insert(all.end(), gradient.begin(), gradient.end());
  }
  return all;
}

std::vector<std::int64_t> sizes(const std::vector<Range>& stages) {
  std::vector<std::int64_t> counts;
  for (const Range& stage : stages) counts.push_back(stage.count());
  return counts;
}

// Linear layers in a row; a test passes any of them to layers().
struct Row : nn::Staged<Float32, Cpu, Variable<float>> {
  explicit Row(const ModelContext& context = {}) : Staged(context) {}
  using Staged::layer;
  using Staged::layers;

  nn::Linear<Float32> first{*this, "first", {.in = width, .out = width}};
  nn::ModuleList<nn::Linear<Float32>> others{*this, "other", 2, nn::LinearOptions{.in = width, .out = width}};
  nn::Linear<Float32> last{*this, "last", {.in = width, .out = width}};
};

}  // namespace

TEST_CASE("a model of layers in several stages computes what it does in one, bit by bit") {
  const data::TokenBatch batch = token_batch();
  const auto run = [&](int stages) {
    Language model(ModelContext{.chunks = stages});
    CHECK(model.num_layers() == 5);
    CHECK(model.stages().size() == static_cast<std::size_t>(stages));
    CHECK(model.rank_of_last_stage() == 0);
    model.initialize({.seed = 3});
    std::vector<float> results = elements(model.forward(batch).value());
    CHECK(nn::loss_of(model, batch).mean() == model.loss(model.forward(batch), batch).mean());
    Tape tape({.seed = 5});
    const Loss<float> loss = nn::loss_of(model, batch);
    results.push_back(loss.sum.value().item());
    loss.backward();
    const auto gradients = gradients_of(model.store());
    results.insert(results.end(), gradients.begin(), gradients.end());
    return results;
  };
  const auto in_one = run(1);
  for (const int stages : {2, 3, 5}) {
    CAPTURE(stages);
    CHECK(run(stages) == in_one);
  }
}

TEST_CASE("a model that computes layers again in the backward pass has the same bits, and updates statistics once") {
  struct Net : nn::Staged<Float32, Cpu, Variable<float>> {
    explicit Net(const ModelContext& context) : Staged(context) {
      layers(first, nn::chain(norm, layer({drop}, [this](const Variable<float>& x) { return drop.forward(relu(x)); })), middle,
             last);
    }
    nn::Linear<Float32> first{*this, "first", {.in = width, .out = width}};
    nn::BatchNorm1d<Float32> norm{*this, "norm", {.channels = width}};
    nn::Dropout<Float32> drop{*this, "drop", 0.3};
    nn::SpectralNormLinear<Float32> middle{*this, "middle", {.in = width, .out = width}};
    nn::Linear<Float32> last{*this, "last", {.in = width, .out = 2}};
  };
  const auto run = [](const ModelContext& context) {
    Net model(context);
    model.initialize({.seed = 3});
    Tape tape({.seed = 5, .samples = 8});
    const Tensor<float> x = random<float>({8, width}, 1);
    const auto y = model.forward(Variable<float>(x));
    std::vector<float> results = elements(y.value());
    sum(multiply(y, y)).backward();
    const auto add = [&](const std::vector<float>& more) { results.insert(results.end(), more.begin(), more.end()); };
    add(gradients_of(model.store()));
    add(elements(model.norm.running_mean.value()));
    add(elements(model.norm.running_var.value()));
    add(elements(model.middle.weight_u.value()));
    return results;
  };
  const auto kept = run({});
  for (const int layers : {1, 2, all_layers}) {
    for (const int stages : {1, 2}) {
      CAPTURE(layers, stages);
      CHECK(run({.chunks = stages, .recompute_layers = layers}) == kept);
    }
  }
}

TEST_CASE("layers that are computed again are frozen, and in training or evaluation, as in their first run") {
  const auto run = [](const ModelContext& context) {
    Language model(context);
    model.initialize({.seed = 3});
    Tape tape({.seed = 5});
    const auto loss = [&] {
      const FrozenParameters frozen(model.blocks[1]);
      model.blocks[2].eval();
      auto result = model.loss(model.forward(token_batch()), token_batch());
      model.blocks[2].train();
      return result;
    }();
    model.blocks[0].eval();
    loss.backward();
    CHECK_FALSE(model.store().has_gradient(model.blocks[1].fc.weight.index()));
    std::vector<float> all;
    for (int index = 0; index < model.store().num_parameters(); ++index) {
      if (!model.store().has_gradient(index)) continue;
      const auto gradient = elements(model.store().gradient<float>(index));
      all.insert(all.end(), gradient.begin(), gradient.end());
    }
    return all;
  };
  const auto kept = run({});
  CHECK(!kept.empty());
  CHECK(run({.recompute_layers = all_layers}) == kept);
}

TEST_CASE("a layer that computes something else when it is computed again is an error") {
  Row model(ModelContext{.recompute_layers = all_layers});
  bool again = false;
  model.layers(model.first,
               model.layer({model.others[0], model.others[1]},
                           [&](const Variable<float>& x) {
                             const auto y = model.others[0].forward(x);
                             return again ? model.others[1].forward(y) : y;
                           }),
               model.last);
  model.initialize({.seed = 3});
  Tape tape({.seed = 5});
  const auto y = sum(model.forward(Variable<float>(random<float>({2, width}, 1))));
  again = true;
  CHECK_THROWS_WITH(y.backward(), ContainsSubstring("did something else"));
}

TEST_CASE("a model that is destroyed before it can compute its layers again is an error") {
  Tape tape({.seed = 5});
  auto model = std::make_unique<Language>(ModelContext{.recompute_layers = all_layers});
  model->initialize({.seed = 3});
  const auto loss = model->loss(model->forward(token_batch()), token_batch());
  model.reset();
  CHECK_THROWS_WITH(loss.backward(), ContainsSubstring("a model was destroyed before the backward pass"));
}

TEST_CASE("layers() says what it can't take") {
  SECTION("a parameter that belongs to no layer") {
    Row model;
    CHECK_THROWS_WITH(model.layers(model.first, model.others[0], model.others[1]),
                      ContainsSubstring("last.weight belongs to no layer of the list that layers() was given") &&
                          ContainsSubstring("give layers() its module, or name that in layer({modules}, function)"));
  }
  SECTION("a parameter of a module that is used by a function, but not named") {
    Row model;
    const auto both = [&model](const Variable<float>& x) { return model.last.forward(model.others[1].forward(x)); };
    CHECK_THROWS_WITH(model.layers(model.first, model.others[0], model.layer({model.last}, both)),
                      ContainsSubstring("other.1.weight belongs to no layer"));
    CHECK_NOTHROW(model.layers(model.first, model.others[0], model.layer({model.last, model.others[1]}, both)));
  }
  SECTION("a buffer that belongs to no layer") {
    struct Net : nn::Staged<Float32, Cpu, Variable<float>> {
      Net() { layers(fc); }
      nn::Linear<Float32> fc{*this, "fc", {.in = width, .out = width}};
      nn::BatchNorm1d<Float32> norm{*this, "norm", {.channels = width, .affine = false}};
    };
    CHECK_THROWS_WITH(Net(), ContainsSubstring("norm.running_mean belongs to no layer"));
  }
  SECTION("a second list") {
    Row model;
    model.layers(model.first, model.others, model.last);
    CHECK(model.num_layers() == 4);
    CHECK_THROWS_WITH(model.layers(model.first, model.others, model.last),
                      ContainsSubstring("layers() of a model is called once"));
  }
  SECTION("costs that are not as many as layers, or none") {
    Row model(ModelContext{.layer_costs = {1, 2, 3}});
    CHECK_THROWS_WITH(model.layers(model.first, model.others, nn::chain(model.last)),
                      ContainsSubstring("a list of 4 layers, from first to last; it got 3 costs of layers"));
    Row negative(ModelContext{.layer_costs = {1, 2, -3, 4}});
    CHECK_THROWS_WITH(negative.layers(negative.first, negative.others, negative.last), ContainsSubstring("0 or more, got -3"));
  }
  SECTION("more stages than layers") {
    Row model(ModelContext{.chunks = 5});
    CHECK_THROWS_WITH(model.layers(model.first, model.others, model.last),
                      ContainsSubstring("4 layers can't be divided into 5 stages"));
  }
}

TEST_CASE("a model of stages without a list has nothing to compute") {
  const Row model;
  CHECK_THROWS_WITH(model.forward(random<float>({3, width}, 1)), ContainsSubstring("its constructor calls layers()"));
}

TEST_CASE("a list of layers may be one, and its functions may ask for the batch") {
  struct Net : nn::Staged<Float32, Cpu, Variable<float>> {
    explicit Net(bool one, const ModelContext& context = {}) : Staged(context) {
      const auto add_batch = [this](const Variable<float>& x, const Variable<float>& batch) {
        return add(fc.forward(x), batch);
      };
      const auto twice = [this](const Variable<float>& batch) { return add(fc.forward(fc.forward(batch)), batch); };
      if (one) {
        layers(layer({fc}, twice));
      } else {
        layers(fc, layer({fc}, add_batch));
      }
    }
    nn::Linear<Float32> fc{*this, "fc", {.in = width, .out = width}};
  };
  const Variable<float> x(random<float>({3, width}, 1));
  const auto run = [&](Net&& model) {
    model.initialize({.seed = 2});
    return elements(model.forward(x).value());
  };
  const auto result = run(Net(true));
  CHECK(run(Net(false)) == result);
  CHECK(run(Net(false, ModelContext{.chunks = 2})) == result);
}

TEST_CASE("measured costs of layers are seconds of each, and leave the model as it was") {
  Language model(ModelContext{.chunks = 2});
  model.initialize({.seed = 1});
  const auto before = elements(model.store().values<float>());
  const std::vector<double> costs = nn::measured_layer_costs(model, token_batch());
  CHECK(costs.size() == model.num_layers());
  CHECK(std::ranges::all_of(costs, [](double seconds) { return seconds > 0; }));
  CHECK(elements(model.store().values<float>()) == before);
  for (int index = 0; index < model.store().num_parameters(); ++index) CHECK_FALSE(model.store().has_gradient(index));
}

namespace {

constexpr std::int64_t many = 1000;  // tokens

// A table of many rows, equal layers, and an output layer that multiplies by the table, or by a small matrix.
struct Tied : nn::Staged<Float32, Cpu, data::TokenBatch> {
  Tied(bool tied, const ModelContext& context) : Staged(context) {
    if (tied) {
      output.emplace(*this, "output", embed.tokens);
      layers(embed, hidden, *output);
    } else {
      small.emplace(*this, "small", nn::LinearOptions{.in = width, .out = width});
      layers(embed, hidden, *small);
    }
  }
  nn::TokenEmbedding<Float32> embed{*this, "embed", {.vocabulary = many, .positions = 8, .width = width}};
  nn::ModuleList<nn::Linear<Float32>> hidden{*this, "hidden", 4, nn::LinearOptions{.in = width, .out = width}};
  std::optional<nn::TokenLogits<Float32>> output;
  std::optional<nn::Linear<Float32>> small;
};

struct Costly : nn::Module<Float32> {
  Costly(const nn::Module<Float32>& parent, std::string_view name, double cost) : Module(parent, name), cost_(cost) {}
  double cost() const { return cost_; }
  nn::Linear<Float32> fc{*this, "fc", {.in = width, .out = width}};
  Variable<float> forward(const Variable<float>& x) const { return fc.forward(x); }

 private:
  double cost_;
};

}  // namespace

TEST_CASE("stages are cut by the matrices that layers multiply by: looking rows up costs nothing, a tied output does") {
  const auto cut = [](bool tied, int stages) { return sizes(Tied(tied, ModelContext{.chunks = stages}).stages()); };
  CHECK(cut(false, 2) == std::vector<std::int64_t>{4, 2});
  CHECK(cut(false, 3) == std::vector<std::int64_t>{3, 2, 1});
  CHECK(cut(true, 2) == std::vector<std::int64_t>{5, 1});
  CHECK(cut(true, 3) == std::vector<std::int64_t>{3, 2, 1});
}

TEST_CASE("stages are cut by what layers say they cost, and by the context's costs before that") {
  struct Net : nn::Staged<Float32, Cpu, Variable<float>> {
    Net(std::vector<double> said, double of_end, const ModelContext& context)
        : Staged(context), modules(*this, "module", said) {
      const auto begin = [this](const Variable<float>& x) { return first.forward(x); };
      const auto end = [](const Variable<float>& x) { return relu(x); };
      layers(layer({first}, begin).costs(6), modules, nn::chain(last, layer({}, end).costs(of_end)));
    }
    nn::Linear<Float32> first{*this, "first", {.in = width, .out = width}};
    nn::ModuleList<Costly> modules;
    Costly last{*this, "last", 1};
  };
  const auto cut = [](std::vector<double> said, std::vector<double> of_context, double of_end = 0) {
    return sizes(Net(std::move(said), of_end, ModelContext{.chunks = 2, .layer_costs = std::move(of_context)}).stages());
  };
  CHECK(cut({1, 1, 1}, {}) == std::vector<std::int64_t>{1, 4});
  CHECK(cut({6, 6, 1}, {}) == std::vector<std::int64_t>{2, 3});
  CHECK(cut({1, 1, 20}, {}) == std::vector<std::int64_t>{3, 2});
  CHECK(cut({1, 1, 20}, {9, 1, 1, 1, 1}) == std::vector<std::int64_t>{1, 4});
  CHECK(cut({1, 1, 1}, {}, 20) == std::vector<std::int64_t>{4, 1});  // the last layer: 1 and 20
  CHECK(cut({1, 1, 1}, {}, 2) == std::vector<std::int64_t>{1, 4});
}
