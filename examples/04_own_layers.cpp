// Layers of your own: parameters with initial values, modules in modules, a list of modules, and a frozen layer.
// Run it in the repository's folder, alone or by mpirun -n 2.
#include <trireme/trireme.hpp>
using namespace trireme;

// Maps x to `narrow` numbers and back with the same matrix: relu(x W^T) W + bias. Its initial output is near zero, so that a
// block returns nearly x at first.
struct Bottleneck : nn::Module<Float32> {
  Bottleneck(const Module& parent, std::string_view name, std::int64_t width, std::int64_t narrow)
      : Module(parent, name),
        weight(add_parameter("weight", {narrow, width}, Initializer::normal(0, 0.05))),
        bias(add_parameter("bias", {1, width}, Initializer::constant(0))) {}
  Value forward(const Value& x) const {
    const Value ones = Tensor<float>::full({x.shape()[0], 1}, 1);
    return matmul(relu(linear(x, weight.variable())), weight.variable()) + matmul(ones, bias.variable());
  }

  Parameter<float> weight, bias;
};

struct Block : nn::Module<Float32> {
  using Module::Module;
  Stream forward(const Stream& x) const { return x + inner.forward(norm.forward(x)); }

  LayerNorm norm{*this, "norm", {.width = 32}};
  Bottleneck inner{*this, "inner", 32, 8};
};

struct Net : nn::Module<Float32> {
  explicit Net(const ModelContext& context) : Module(context) { features.weight.freeze(); }  // it keeps its initial values
  Value forward(const data::Rows& rows) const {
    Stream x = tanh(features.forward(rows.x));
    for (std::size_t block = 0; block < blocks.size(); ++block) x = blocks[block].forward(x);
    return output.forward(x);
  }

  Linear features{*this, "features", {.in = 4, .out = 32, .weight_initializer = Initializer::normal(0, 0.5)}};
  nn::ModuleList<Block> blocks{*this, "block", 3};  // "block.0.inner.weight" is a name in checkpoints
  Linear output{*this, "output", {.in = 32, .out = 4}};
};

void train(trainer::Run& run) {
  const auto [training, test] = data::read_csv("examples/flowers.csv", {.label = "class"}).split({.standardize = true});
  Net net(run.context());
  optim::AdamW optimizer(net, {.learning_rate = 0.005});
  run.add(net, optimizer);
  const data::Loader rows(training, run.batch());
  for (auto& step : run.steps(rows)) {
    for (const auto& batch : step.batches()) {
      step.backward(batch, [&] { return cross_entropy(net.forward(batch), batch.labels); });
    }
    step.update(optimizer);
  }
  const auto right = [](const auto& y, const auto& batch) { return accuracy(y, batch.labels); };
  run.report({{"test_accuracy", run.evaluate(net, test, right)}});
}

int main(int argc, char** argv) { return trainer::launch(argc, argv, {.until = Epochs{15}}, train); }
