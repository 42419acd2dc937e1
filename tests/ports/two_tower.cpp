// Two towers: queries and items that belong together get vectors of one direction (Radford et al. 2021, arXiv 2103.00020, for
// images and texts). two_tower.py is the same in PyTorch.
#include "ports.hpp"
using namespace trireme;

struct Tower : nn::Module<Float32> {
  Tower(const Module& parent, std::string_view name, std::int64_t words)
      : Module(parent, name), embedding(*this, "embedding", {.rows = words, .width = 16, .padding_idx = 0}) {}
  Value forward(const Tensor<std::int32_t>& words) const {
    const Value x = sum(embedding.forward(words), 1) / cast<float>(sum(ne(words, 0), 1, true));
    return normalize(output.forward(gelu_erf(hidden.forward(x))));
  }

  Embedding embedding;
  Linear hidden{*this, "hidden", {.in = 16, .out = 32}};
  Linear output{*this, "output", {.in = 32, .out = 12}};
};

struct TwoTower : nn::Module<Float32> {
  using Module::Module;
  Loss<float> loss(const Tensor<std::int32_t>& of_queries, const Tensor<std::int32_t>& of_items) const {
    const Value cosines = matmul(queries.forward(of_queries), transpose(items.forward(of_items), 0, 1));
    const Value logits = exp(log_scale.variable()) * cosines;
    const auto labels = arange<std::int32_t>(of_queries.dim(0));
    return 0.5 * (cross_entropy(logits, labels) + cross_entropy(transpose(logits, 0, 1), labels));
  }

  Tower queries{*this, "queries", 40};
  Tower items{*this, "items", 60};
  Parameter<float> log_scale = add_parameter("log_scale", {}, Initializer::constant(2));
};

ports::Losses ports::two_tower(const Group& world, const std::string& weights, const Data& data) {
  TwoTower net;
  nn::load_weights<float>(net, weights);
  optim::AdamW optimizer(net, {.learning_rate = 0.01, .weight_decay = 0.1});
  parallel::DataParallel replicas(net, world);
  Losses losses;
  for (int number = 0; number < 20; ++number) {
    parallel::Step step = replicas.begin(number);
    step.backward(number, [&] { return net.loss(data.indices.at("queries"), data.indices.at("items")); });
    step.update(optimizer, {.clip_norm = 1});
    losses.push_back(step.finish().loss());
  }
  return losses;
}
