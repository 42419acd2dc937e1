// Reads a checkpoint of another program, 05: prints its tensors without a model, then evaluates the model that it holds.
// Run 05_checkpoints, then 13_read_a_checkpoint, alone or by mpirun -n 2, in the same folder.
#include <cstdio>
#include <cstring>
#include <trireme/trireme.hpp>
using namespace trireme;

void look_into(const Location& directory) {
  const std::vector<std::int64_t> steps = checkpoint::committed_steps(directory);
  require(!steps.empty(), "there is no checkpoint in {}", directory.string());
  const checkpoint::CheckpointReader reader(checkpoint::checkpoint_folder(directory, steps.back()));
  const checkpoint::Manifest& manifest = reader.manifest();
  std::printf("step %d\n", static_cast<int>(manifest.step));
  for (const checkpoint::SavedTensor& tensor : manifest.tensors)
    std::printf("  %s %s\n", tensor.name.c_str(), tensor.shape.str().c_str());
  const std::vector<std::byte> bytes = reader.read(*reader.find("model.output.bias"));
  Tensor<float> bias({4});
  std::memcpy(bias.data(), bytes.data(), bytes.size());
  std::printf("model.output.bias is %s\n", to_string(bias).c_str());
}

struct Net : nn::Module<Float32> {  // the names of its layers select the tensors that it loads
  using Module::Module;
  Value forward(const data::Rows& rows) const { return output.forward(relu(hidden.forward(rows.x))); }

  Linear hidden{*this, "hidden", {.in = 4, .out = 64}};
  Linear output{*this, "output", {.in = 64, .out = 4}};
};

void evaluate(trainer::Run& run) {
  if (run.world().rank() == 0) look_into(run.options().checkpoints.directory);
  const data::Table flowers = data::read_csv("examples/flowers.csv", {.label = "class"});
  const data::TableSplit tables = flowers.split({.test = 0.3, .standardize = true});
  Net net(run.context());
  run.add(net);  // without an optimizer: loads only the model from the checkpoint
  const auto right = [](const auto& y, const auto& batch) { return accuracy(y, batch.labels); };
  run.report({{"test_accuracy", run.evaluate(net, tables.test, right)}});
}

int main(int argc, char** argv) {
  return trainer::launch(argc, argv, {.batch_size = 24, .checkpoints = {.directory = "flowers"}}, evaluate);
}
