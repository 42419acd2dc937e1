#include "trireme/nn/module.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "gradient_check.hpp"
#include "trireme/core/philox.hpp"
#include "trireme/models/generate.hpp"
#include "trireme/models/gpt.hpp"
#include "trireme/nn/attention.hpp"

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
  CHECK(layer.attention.in_proj.weight.info().shape == Shape{16, 8});
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

TEST_CASE("a GPT's names are those of GPT-2, and its first values do not depend on its depth") {
  models::Gpt<Float32> model({.layers = 2, .heads = 2, .width = 8, .block = 6, .vocabulary = 11});
  CHECK(model.store().find("transformer.h.1.attn.c_attn.weight") >= 0);
  CHECK(model.store().find("transformer.h.0.mlp.c_proj.bias") >= 0);
  CHECK(model.store().find("transformer.ln_f.weight") >= 0);
  CHECK(model.store().find("lm_head.weight") < 0);
  CHECK_THROWS_AS(models::Gpt<Float32>({.layers = 1, .heads = 3, .width = 8}), Error);
  const auto tokens = tokens_of({1, 7}, 11);
  CHECK_THROWS_AS(model.logits(tokens), Error);  // longer than block
}

TEST_CASE("generation continues a prompt, sees one block at most and repeats for the same seed") {
  models::Gpt<Float32> model({.layers = 1, .heads = 2, .width = 8, .block = 6, .vocabulary = 11});
  model.initialize({.seed = 4});
  const auto first = models::generate(model, {1, 2, 3}, {.count = 20, .temperature = 1, .seed = 5});
  CHECK(first.size() == 20);
  CHECK(first == models::generate(model, {1, 2, 3}, {.count = 20, .temperature = 1, .seed = 5}));
  CHECK(first != models::generate(model, {1, 2, 3}, {.count = 20, .temperature = 1, .seed = 6}));
  CHECK_THROWS_AS(models::generate(model, {}, {}), Error);
}

namespace {

double most_expensive(std::span<const double> costs, const std::vector<Range>& stages) {
  double most = 0;
  for (const auto& [begin, end] : stages)
    most = std::max(most, std::accumulate(&costs[begin], &costs[begin] + (end - begin), 0.0));
  return most;
}

// The least maximum of all divisions.
double least_maximum(std::span<const double> costs, int num_stages) {
  if (num_stages == 1) return std::accumulate(costs.begin(), costs.end(), 0.0);
  double least = std::numeric_limits<double>::infinity();
  double first = 0;
  for (std::size_t layers = 1; layers + static_cast<std::size_t>(num_stages) <= costs.size() + 1; ++layers) {
    first += costs[layers - 1];
    least = std::min(least, std::max(first, least_maximum(costs.subspan(layers), num_stages - 1)));
  }
  return least;
}

}  // namespace

TEST_CASE("layers are divided into stages of which the most expensive one costs as little as can be") {
  for (std::uint64_t round = 0; round < 200; ++round) {
    std::vector<double> costs(1 + round % 9);
    for (std::size_t layer = 0; layer < costs.size(); ++layer) costs[layer] = philox_uniform(1, round, layer);
    for (int num_stages = 1; num_stages <= static_cast<int>(costs.size()); ++num_stages) {
      const std::vector<Range> stages = nn::divide_layers(costs, num_stages);
      REQUIRE(stages.size() == static_cast<std::size_t>(num_stages));
      std::int64_t next = 0;
      for (const auto& [begin, end] : stages) {
        REQUIRE((begin == next && end > begin));
        next = end;
      }
      REQUIRE(next == static_cast<std::int64_t>(costs.size()));
      REQUIRE(most_expensive(costs, stages) == Approx(least_maximum(costs, num_stages)).epsilon(1e-12));
    }
  }
}

TEST_CASE("layers of equal cost make stages as even as can be, the first ones longer") {
  const auto sizes = [](const std::vector<double>& costs, int num_stages) {
    std::vector<std::int64_t> counts;
    for (const Range& stage : nn::divide_layers(costs, num_stages)) counts.push_back(stage.count());
    return counts;
  };
  CHECK(sizes(std::vector<double>(7, 1), 3) == std::vector<std::int64_t>{3, 2, 2});
  CHECK(sizes({0, 1, 1, 1, 1, 1, 0}, 2) == std::vector<std::int64_t>{4, 3});
  CHECK(sizes({1, 1, 1, 1, 1, 1, 6}, 3) == std::vector<std::int64_t>{3, 3, 1});  // the maximum allows other divisions too
  CHECK_THROWS_AS(nn::divide_layers(std::vector<double>{1, 2}, 3), Error);
  CHECK_THROWS_AS(nn::divide_layers(std::vector<double>{1, -2}, 1), Error);
}
