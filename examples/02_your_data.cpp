// Your own data: classifies the rows of a CSV file. After Ctrl-C the next call resumes the training.
// build/release/bin/02_your_data --csv examples/flowers.csv, or the same by mpirun -n 4.
#include <trireme/trireme.hpp>
using namespace trireme;

struct Net : nn::Module<Float32> {
  Net(const ModelContext& context, const data::Table& table)
      : Module(context),
        hidden(*this, "hidden", {.in = table.num_features(), .out = 64}),
        output(*this, "output", {.in = 64, .out = table.num_classes()}) {}
  Value forward(const data::Rows& rows) const { return output.forward(relu(hidden.forward(rows.x))); }

  Linear hidden, output;
};

void train(trainer::Run& run, const std::string& csv) {
  const auto [training, test] = data::read_csv(csv, {.label = "class"}).split({.test = 0.2, .standardize = true});
  Net net(run.context(), training);
  optim::AdamW optimizer(net, {.learning_rate = 0.01});
  run.add(net, optimizer);
  const data::Loader rows(training, run.batch());
  for (auto& step : run.steps(rows)) {
    for (const auto& batch : step.batches()) {
      step.backward(batch, [&] { return cross_entropy(net.forward(batch), batch.labels); });
    }
    step.update(optimizer);
    if (!run.due(Epochs{5})) continue;
    const Mean found = run.evaluate(net, test, [](const auto& y, const auto& batch) { return accuracy(y, batch.labels); });
    run.report({{"test_accuracy", found}});
  }
}

int main(int argc, char** argv) {
  std::string csv = "examples/flowers.csv";
  trainer::CommandLine line("Trains a classifier of the rows of a table");
  line.add("csv", csv, "file with a header, numbers, and a column \"class\"");
  return trainer::launch(argc, argv, line, {.until = Epochs{20}, .checkpoints = {.directory = "run"}},
                         [&](trainer::Run& run) { train(run, csv); });
}
