// A Conformer block that reads speech (Gulati et al. 2020, arXiv 2005.08100), trained by CTC. conformer.py is the same in
// PyTorch.
#include "ports.hpp"
using namespace trireme;

struct FeedForward : nn::Module<Float32> {
  FeedForward(const Module& parent, std::string_view name, std::int64_t size) : Module(parent, name), width(size) {}
  Value forward(const Value& x) const { return down.forward(silu(up.forward(norm.forward(x)))); }

  std::int64_t width;
  LayerNorm norm{*this, "norm", {.width = width}};
  Linear up{*this, "up", {.in = width, .out = 4 * width}};
  Linear down{*this, "down", {.in = 4 * width, .out = width}};
};

struct Attention : nn::Module<Float32> {
  Attention(const Module& parent, std::string_view name, std::int64_t size, int count)
      : Module(parent, name), width(size), heads(count) {}
  Value forward(const Value& x) const { return attention.forward(norm.forward(x)); }

  std::int64_t width;
  int heads;
  LayerNorm norm{*this, "norm", {.width = width}};
  MultiheadAttention attention{*this, "attention", {.embed_dim = width, .num_heads = heads}};
};

struct Convolution : nn::Module<Float32> {
  Convolution(const Module& parent, std::string_view name, std::int64_t size, std::int64_t kernel_size)
      : Module(parent, name), width(size), kernel(kernel_size) {}
  Value forward(const Value& x) const {
    const Value y = glu(pointwise1.forward(norm1.forward(x)));
    return pointwise2.forward(silu(norm2.forward(depthwise.forward(y))));
  }

  std::int64_t width, kernel;
  LayerNorm norm1{*this, "norm1", {.width = width}};
  Conv1d pointwise1{*this, "pointwise1", {.in = width, .out = 2 * width, .kernel = 1}};
  Conv1d depthwise{*this, "depthwise", {.in = width, .out = width, .kernel = kernel, .padding = kernel / 2, .groups = width}};
  BatchNorm1d norm2{*this, "norm2", {.channels = width}};
  Conv1d pointwise2{*this, "pointwise2", {.in = width, .out = width, .kernel = 1}};
};

struct Conformer : nn::Module<Float32> {
  Conformer(const Module& parent, std::string_view name, std::int64_t size, int count, std::int64_t kernel_size)
      : Module(parent, name), width(size), heads(count), kernel(kernel_size) {}
  Value forward(Value x) const {
    x = x + 0.5 * feed_forward1.forward(x);
    x = x + attention.forward(x);
    x = x + convolution.forward(x);
    x = x + 0.5 * feed_forward2.forward(x);
    return norm.forward(x);
  }

  std::int64_t width;
  int heads;
  std::int64_t kernel;
  FeedForward feed_forward1{*this, "feed_forward1", width};
  Attention attention{*this, "attention", width, heads};
  Convolution convolution{*this, "convolution", width, kernel};
  FeedForward feed_forward2{*this, "feed_forward2", width};
  LayerNorm norm{*this, "norm", {.width = width}};
};

struct Recognizer : nn::Module<Float32> {
  using Module::Module;
  Value forward(const Value& x) const { return log_softmax(output.forward(block.forward(input.forward(x)))); }

  Linear input{*this, "input", {.in = 10, .out = 24}};
  Conformer block{*this, "block", 24, 4, 7};
  Linear output{*this, "output", {.in = 24, .out = 9}};
};

ports::Losses ports::conformer(const Group& world, const std::string& weights, const Data& data) {
  Recognizer net;
  nn::load_weights<float>(net, weights);
  optim::AdamW optimizer(net, {.learning_rate = 0.002});
  parallel::DataParallel replicas(net, world);
  Losses losses;
  for (int number = 0; number < 20; ++number) {
    parallel::Step step = replicas.begin(number);
    step.backward(number, [&] {
      const auto scores = net.forward(data.numbers.at("speech"));
      return ctc_loss(scores, data.indices.at("letters"), data.indices.at("times"), data.indices.at("lengths"));
    });
    step.update(optimizer);
    losses.push_back(step.finish().loss());
  }
  return losses;
}
