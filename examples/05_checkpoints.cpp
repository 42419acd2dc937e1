// Validation and checkpoints without a loop: fit() trains until five validations in a row bring no improvement, and ends with
// the best values. Run it in the repository's folder, stop it by Ctrl-C and call it again, also by mpirun -n 4: it resumes. A
// checkpoint restores the model, the optimizer's moments, the place in the data, random numbers and the validations. The number
// of ranks may change, and so may --until, --clip and --warmup, which the run then prints.
#include <trireme/trireme.hpp>
using namespace trireme;

struct Net : nn::Module<Float32> {
  using Module::Module;
  Value forward(const data::Rows& rows) const { return output.forward(drop.forward(relu(hidden.forward(rows.x)))); }
  Loss<float> loss(const Value& y, const data::Rows& rows) const { return cross_entropy(y, rows.labels); }

  Linear hidden{*this, "hidden", {.in = 4, .out = 64}};
  Dropout drop{*this, "drop", 0.1};
  Linear output{*this, "output", {.in = 64, .out = 4}};
};

void train(trainer::Run& run) {
  const data::Table flowers = data::read_csv("examples/flowers.csv", {.label = "class"});
  const data::TableSplit tables = flowers.split({.test = 0.3, .standardize = true});
  Net net(run.context());
  optim::AdamW optimizer(net, {.learning_rate = 0.01});
  const data::Loader rows(tables.training, run.batch());
  const auto validate = [&] { return run.evaluate(net, tables.test).value(); };
  const trainer::FitReport report =
      trainer::fit(run, net, optimizer, rows, {.validate = validate, .patience = 5, .keep_best = true});
  if (report.best) run.report({{"best_validation_loss", *report.best}, {"that_of_these_values", validate()}});
}

int main(int argc, char** argv) {
  return trainer::launch(
      argc, argv,
      {.until = Epochs{200}, .batch_size = 24, .checkpoints = {.directory = "flowers"}, .checkpoint_every = Epochs{5}}, train);
}
