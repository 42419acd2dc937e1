// A stack of gated, dilated, causal convolutions (van den Oord et al. 2016, arXiv 1609.03499) that continues a sound.
// wavenet.py is the same in PyTorch.
#include "ports.hpp"
using namespace trireme;

struct DilatedLayer : nn::Module<Float32> {
  DilatedLayer(const Module& parent, std::string_view name, std::int64_t reach) : Module(parent, name), dilation(reach) {}
  std::pair<Value, Value> forward(const Value& x) const {
    const auto [filter, gate] = chunk<2>(gated.forward(pad(x, {0, 0, dilation, 0})), -1);
    const Value y = tanh(filter) * sigmoid(gate);
    return {x + residual.forward(y), skip.forward(y)};
  }

  std::int64_t dilation;
  Conv1d gated{*this, "gated", {.in = 16, .out = 32, .kernel = 2, .dilation = dilation}};
  Conv1d residual{*this, "residual", {.in = 16, .out = 16, .kernel = 1}};
  Conv1d skip{*this, "skip", {.in = 16, .out = 16, .kernel = 1}};
};

struct WaveNet : nn::Module<Float32> {
  using Module::Module;
  Value forward(const Tensor<std::int32_t>& samples) const {
    Value x = embedding.forward(samples), skips = zeros_like(x);
    for (const DilatedLayer& layer : layers) {
      const auto [y, skip] = layer.forward(x);
      x = y;
      skips = skips + skip;
    }
    return output.forward(relu(hidden.forward(relu(skips))));
  }

  Embedding embedding{*this, "embedding", {.rows = 32, .width = 16}};
  nn::ModuleList<DilatedLayer> layers{*this, "layers", std::vector<std::int64_t>{1, 2, 4, 8}};
  Conv1d hidden{*this, "hidden", {.in = 16, .out = 32, .kernel = 1}};
  Conv1d output{*this, "output", {.in = 32, .out = 32, .kernel = 1}};
};

ports::Losses ports::wavenet(const Group& world, const std::string& weights, const Data& data) {
  const auto& samples = data.indices.at("samples");
  WaveNet net;
  nn::load_weights<float>(net, weights);
  optim::Adam optimizer(net, {.learning_rate = 0.005});
  parallel::DataParallel replicas(net, world);
  Losses losses;
  for (int number = 0; number < 20; ++number) {
    parallel::Step step = replicas.begin(number);
    step.backward(number, [&] { return cross_entropy(net.forward(slice(samples, 1, 0, -1)), slice(samples, 1, 1)); });
    step.update(optimizer);
    losses.push_back(step.finish().loss());
  }
  return losses;
}
