// A model of your own on a mesh: two ranks divide each layer, two the list of layers. The same losses: mpirun -n 1, 2 or 4.

#include <cstdio>
#include <list>
#include <optional>
#include <trireme/trireme.hpp>

using namespace trireme;

struct Block : nn::Module<Float32> {
  using nn::Module<Float32>::Module;
  nn::LayerNorm<Float32> norm{*this, "norm", {.width = 32}};
  nn::Linear<Float32> up{*this, "up", {.in = 32, .out = 64, .split = nn::TensorSplit::column}};
  nn::Linear<Float32> down{*this, "down", {.in = 64, .out = 32, .split = nn::TensorSplit::row}};

  Variable<float> forward(const Variable<float>& x) const { return add(x, down.forward(gelu(up.forward(norm.forward(x))))); }
};

struct Net : nn::Module<Float32> {
  explicit Net(const ModelContext& context) : nn::Module<Float32>(context) {
    for (int layer = 0; layer < 4; ++layer) {  // as many in each stage
      if (context.has_stage(layer * context.num_stages() / 4)) blocks.emplace_back(*this, "block" + std::to_string(layer));
    }
    if (context.has_stage(context.num_stages() - 1)) output.emplace(*this, "output", nn::LinearOptions{.in = 32, .out = 2});
  }

  Variable<float> forward(Variable<float> x) const {
    for (const Block& block : blocks) x = block.forward(x);
    return output ? output->forward(x) : x;
  }

  std::list<Block> blocks;                    // those that lie here
  std::optional<nn::Linear<Float32>> output;  // of the last stage
};

constexpr std::int64_t rows = 16;  // of a micro-batch; a step has 4

Tensor<float> input(std::int64_t step, int micro) {
  Tensor<float> x({rows, 32});
  const std::int64_t first = (step * 4 + micro) * x.numel();
  for (std::int64_t i = 0; i < x.numel(); ++i) x.data()[i] = static_cast<float>((first + i) * (first + i) % 65537) / 32768 - 1;
  return x;
}

// Whether the first and the tenth number of a row have the same sign.
Tensor<std::int32_t> target(const Tensor<float>& x) {
  Tensor<std::int32_t> same({rows});
  for (std::int64_t row = 0; row < rows; ++row) same.data()[row] = x.data()[row * 32] * x.data()[row * 32 + 9] > 0;
  return same;
}

int train(const Group& world) {
  const int tensor = world.size() % 2 == 0 ? 2 : 1;
  const ProcessMesh mesh(world, {.data = 1, .pipeline = world.size() / tensor, .tensor = tensor});
  const ModelContext context = parallel::model_context(mesh);
  Net model(context);
  model.initialize();
  parallel::DataParallel replicas(model, mesh);
  optim::AdamW<Float32> optimizer(model, {.learning_rate = 0.003});

  std::int64_t number = 0;
  const auto forward = [&](const auto& x, int micro) { return model.forward(context.has_stage(0) ? input(number, micro) : x); };
  const auto loss = [&](const auto& x, int micro) { return cross_entropy(forward(x, micro), target(input(number, micro))); };
  parallel::PipelineStage<float> stage{.input = {rows, 32}, .output = {rows, 32}};
  if (model.output) stage.loss = loss;
  if (!model.output) stage.forward = forward;
  const auto schedule = parallel::make_pipeline_schedule({.num_ranks = context.num_stages(), .num_micro_batches = 4});
  parallel::Pipeline<float> pipeline(mesh, schedule, {stage});
  for (; number <= 400; ++number) {
    parallel::Step step = replicas.begin(number, 4);
    pipeline.run(step, number * 4 * rows, rows);
    step.update(optimizer);
    if (world.rank() == 0 && number % 100 == 0)
      std::printf("step %3d  loss %.4f\n", static_cast<int>(number), step.finish().loss());
  }
  return 0;
}

int main() { return launch(BackendKind::mpi, {}, train); }
