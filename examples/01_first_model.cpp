// A first model: which points of a square lie in a circle? It learns from a table of numbers that the program makes.
// Run it alone, by mpirun -n 4, or with --backend thread --ranks 2: the printed loss is the same. --help lists more.
#include <trireme/trireme.hpp>
using namespace trireme;

struct Net : nn::Module<Float32> {
  using Module::Module;
  Value forward(const data::Rows& rows) const { return output.forward(relu(hidden.forward(rows.x))); }

  Linear hidden{*this, "hidden", {.in = 2, .out = 32}};
  Linear output{*this, "output", {.in = 32, .out = 2}};
};

data::Table points() {
  data::TableContent content{.feature_names = {"x", "y"}, .class_names = {"outside", "inside"}};
  for (int point = 0; point < 1000; ++point) {
    const float x = static_cast<float>(point * 389 % 1000) / 500 - 1;
    const float y = static_cast<float>(point * 631 % 997) / 498 - 1;
    content.features.insert(content.features.end(), {x, y});
    content.labels.push_back(x * x + y * y < 0.6F ? 1 : 0);
  }
  return data::Table(std::move(content));
}

void train(trainer::Run& run) {
  const auto [training, test] = points().split({.test = 0.2});
  Net net(run.context());  // the context has the ranks that share the model, and the seed of its initial values
  optim::AdamW optimizer(net, {.learning_rate = 0.01});
  run.add(net, optimizer);                         // from now on all ranks hold the same values
  const data::Loader rows(training, run.batch());  // this rank's part of every batch
  for (auto& step : run.steps(rows)) {
    for (const auto& batch : step.batches()) {
      step.backward(batch, [&] { return cross_entropy(net.forward(batch), batch.labels); });  // gradients are reduced meanwhile
    }
    step.update(optimizer);
    if (!run.due(Epochs{5})) continue;
    const Mean found = run.evaluate(net, test, [](const auto& y, const auto& batch) { return accuracy(y, batch.labels); });
    run.report({{"test_accuracy", found}});
  }
}

int main(int argc, char** argv) { return trainer::launch(argc, argv, {.until = Epochs{15}}, train); }
