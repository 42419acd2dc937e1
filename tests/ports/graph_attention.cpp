// Graph attention (Velickovic et al. 2017, arXiv 1710.10903) on a list of edges, which classifies each node.
// graph_attention.py is the same in PyTorch.
#include <limits>

#include "ports.hpp"
using namespace trireme;

using Index = Tensor<std::int32_t>;

struct GraphAttention : nn::Module<Float32> {
  GraphAttention(const Module& parent, std::string_view name, std::int64_t in, std::int64_t size, std::int64_t count)
      : Module(parent, name), width(in), out(size), heads(count) {}
  Value forward(const Value& x, const Index& source, const Index& target) const {
    const Value h = reshape(linear.forward(x), {-1, heads, out});
    Value scores = index_select(sum(h * of_source.variable(), -1), 0, source);
    scores = leaky_relu(scores + index_select(sum(h * of_target.variable(), -1), 0, target), 0.2);
    const auto index = expand(unsqueeze(target, 1), scores.shape());
    auto largest = Tensor<float>::full({x.shape()[0], heads}, -std::numeric_limits<float>::infinity());
    largest = scatter_reduce(largest, 0, index, scores.value(), ScatterReduction::amax);
    const Value shares = exp(scores - index_select(largest, 0, target));
    const Value sums = index_add(zeros_like(largest), 0, target, shares);
    const Value messages = unsqueeze(shares / index_select(sums, 0, target), -1) * index_select(h, 0, source);
    return flatten(index_add(zeros_like(h), 0, target, messages), 1) + bias.variable();
  }

  std::int64_t width, out, heads;
  Linear linear{*this, "linear", {.in = width, .out = heads * out, .bias = false}};
  Parameter<float> of_source = add_parameter("of_source", {heads, out}, Initializer::xavier_uniform());
  Parameter<float> of_target = add_parameter("of_target", {heads, out}, Initializer::xavier_uniform());
  Parameter<float> bias = add_parameter("bias", {heads * out}, Initializer::constant(0));
};

struct GraphNet : nn::Module<Float32> {
  using Module::Module;
  Value forward(const Value& x, const Index& source, const Index& target) const {
    return second.forward(elu(first.forward(x, source, target)), source, target);
  }

  GraphAttention first{*this, "first", 12, 6, 4};
  GraphAttention second{*this, "second", 24, 5, 1};
};

ports::Losses ports::graph_attention(const Group& world, const std::string& weights, const Data& data) {
  const Index source = select(data.indices.at("edges"), 0, 0), target = select(data.indices.at("edges"), 0, 1);
  GraphNet net;
  nn::load_weights<float>(net, weights);
  optim::Adam optimizer(net, {.learning_rate = 0.01, .weight_decay = 5e-4});
  parallel::DataParallel replicas(net, world);
  Losses losses;
  for (int number = 0; number < 20; ++number) {
    parallel::Step step = replicas.begin(number);
    step.backward(number, [&] {
      return cross_entropy(net.forward(data.numbers.at("nodes"), source, target), data.indices.at("classes"));
    });
    step.update(optimizer);
    losses.push_back(step.finish().loss());
  }
  return losses;
}
