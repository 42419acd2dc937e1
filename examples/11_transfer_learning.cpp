// Transfer learning: a model learns one task and is saved. Another model takes its lower layers, frozen, and learns a second
// task with a new head from few examples. Run it in the repository's folder, alone or by mpirun -n 2.
#include <cstdio>
#include <filesystem>
#include <trireme/trireme.hpp>
using namespace trireme;

struct Backbone : nn::Module<Float32> {
  using Module::Module;
  Value forward(const data::Rows& rows) const { return relu(second.forward(relu(first.forward(rows.x)))); }
  Linear first{*this, "first", {.in = 4, .out = 32}}, second{*this, "second", {.in = 32, .out = 16}};
};

struct Net : nn::Module<Float32> {
  Net(const ModelContext& context, std::int64_t classes) : Module(context), head(*this, "head", {.in = 16, .out = classes}) {}
  Value forward(const data::Rows& rows) const { return head.forward(backbone.forward(rows)); }
  Loss<float> loss(const Value& y, const data::Rows& rows) const { return cross_entropy(y, rows.labels); }
  Backbone backbone{*this, "backbone"};
  Linear head;
};

double learn(const Group& world, Net& net, const data::TableSplit& tables) {
  trainer::Run run(world, {.until = Steps{150}});
  optim::AdamW optimizer(net, {.learning_rate = 0.01});
  const data::Loader rows(tables.training, run.batch());
  trainer::fit(run, net, optimizer, rows);  // a model that has values keeps them
  return run.evaluate(net, tables.test, [](const auto& y, const auto& batch) { return accuracy(y, batch.labels); });
}

data::Table early_or_late(const data::Table& flowers) {  // the second task
  data::TableContent content{.feature_names = flowers.feature_names(), .class_names = {"early", "late"}};
  content.features.assign(flowers.features().begin(), flowers.features().end());
  for (const std::int32_t species : flowers.labels()) content.labels.push_back(species % 2);
  return data::Table(std::move(content));
}

int train(const Group& world) {
  const data::Table flowers = data::read_csv("examples/flowers.csv", {.label = "class"});
  const std::string file = std::filesystem::temp_directory_path() / "trireme_flowers.safetensors";
  Net species(ModelContext{}, flowers.num_classes());
  learn(world, species, flowers.split());
  if (world.rank() == 0) nn::save_weights<float>(species, file);
  world.barrier();

  Net net(ModelContext{}, 2);
  const SafetensorsFile weights(file);
  for (const SafetensorsEntry& entry : weights.tensors()) {
    const int index = net.store().find(entry.name);
    if (!entry.name.starts_with("backbone.")) continue;
    net.store().write_values(index, Tensor<float>::from(entry.shape, weights.read_values<float>(entry.name)));
  }
  net.head.initialize();
  const FrozenParameters frozen(net.backbone);
  const double right = learn(world, net, early_or_late(flowers).split({.test = 0.9}));  // 30 examples to learn from
  if (world.rank() == 0) std::printf("with a frozen backbone: test_accuracy %.4f\n", right);
  return 0;
}

int main() { return launch(BackendKind::mpi, {}, train); }
