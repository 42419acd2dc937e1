// A model of your own on a mesh: two ranks divide each layer, two the list of layers. The same losses: mpirun -n 1, 2 or 4.

#include <cstdio>
#include <trireme/trireme.hpp>

using namespace trireme;

struct Batch {
  Tensor<float> x;
  Tensor<std::int32_t> same;  // whether the first and the last number of a row have the same sign
  std::int64_t first_sample;
};

constexpr std::int64_t rows = 16;  // of a micro-batch
constexpr std::int64_t numbers = 10;

Batch load(std::int64_t first_sample) {
  const Batch batch{Tensor<float>({rows, numbers}), Tensor<std::int32_t>({rows}), first_sample};
  float* x = batch.x.data();
  for (std::int64_t row = 0; row < rows; ++row, x += numbers) {
    for (std::int64_t column = 0; column < numbers; ++column) {
      const std::int64_t place = (first_sample + row) * numbers + column;
      x[column] = static_cast<float>(place * place % 65537) / 32768 - 1;
    }
    batch.same.data()[row] = x[0] * x[numbers - 1] > 0;
  }
  return batch;
}

struct Block : nn::Module<Float32> {
  using Module::Module;
  LayerNorm norm{*this, "norm", {.width = 32}};
  Linear up{*this, "up", {.in = 32, .out = 64, .split = nn::TensorSplit::column}};
  Linear down{*this, "down", {.in = 64, .out = 32, .split = nn::TensorSplit::row}};

  Value forward(const Value& x) const { return x + down.forward(gelu(up.forward(norm.forward(x)))); }
};

struct Net : nn::Staged<Float32, Cpu, Batch> {
  explicit Net(const ModelContext& context) : Staged(context) {
    layers(layer({input}, [this](const Batch& batch) { return input.forward(batch.x); }), blocks, output);
  }
  Loss<float> loss(const Value& y, const Batch& batch) const { return cross_entropy(y, batch.same); }

  Linear input{*this, "input", {.in = numbers, .out = 32}};
  nn::ModuleList<Block> blocks{*this, "block", 4};
  Linear output{*this, "output", {.in = 32, .out = 2}};
};

int train(const Group& world) {
  const int tensor = world.size() % 2 == 0 ? 2 : 1;
  const ProcessMesh mesh(world, {.data = 1, .pipeline = world.size() / tensor, .tensor = tensor});
  Net model(parallel::model_context(mesh));
  model.initialize();
  parallel::DataParallel replicas(model, mesh);
  optim::AdamW optimizer(model, {.learning_rate = 0.003});

  for (std::int64_t number = 0; number <= 400; ++number) {
    std::vector<Batch> batches;  // four micro-batches, which the stages work on at the same time
    for (int micro = 0; micro < 4; ++micro) batches.push_back(load((number * 4 + micro) * rows));
    parallel::Step step = replicas.begin(number, 4);
    step.backward(model, batches);
    step.update(optimizer);
    if (world.rank() == 0 && number % 100 == 0)
      std::printf("step %3d  loss %.4f\n", static_cast<int>(number), step.finish().loss());
  }
  return 0;
}

int main() { return launch(BackendKind::mpi, {}, train); }
