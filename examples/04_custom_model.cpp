// A model of your own on a mesh: two ranks divide each layer, two the list of layers. mpirun -n 4 (or 1, or 2): the same
// losses.

#include <cstdio>
#include <memory>
#include <trireme/trireme.hpp>
#include <vector>

using namespace trireme;

struct Block : nn::Module<Float32> {
  using nn::Module<Float32>::Module;
  nn::LayerNorm<Float32> norm{*this, "norm", {.width = 32}};
  nn::Linear<Float32> up{*this, "up", {.in = 32, .out = 64, .split = nn::TensorSplit::column}};
  nn::Linear<Float32> down{*this, "down", {.in = 64, .out = 32, .split = nn::TensorSplit::row}};

  Variable<float> forward(const Variable<float>& x) const { return add(x, down.forward(gelu(up.forward(norm.forward(x))))); }
};

struct Model : nn::Module<Float32> {
  explicit Model(const nn::ModelPart& part) : nn::Module<Float32>(part), last(part.num_stages - 1) {
    for (int layer = 0; layer < 4; ++layer) {  // as many in each stage
      if (!part.has_stage(layer * part.num_stages / 4)) continue;
      blocks.push_back(std::make_unique<Block>(*this, "block" + std::to_string(layer)));
    }
    if (part.has_stage(last))
      output = std::make_unique<nn::Linear<Float32>>(*this, "output", nn::LinearOptions{.in = 32, .out = 2});
  }

  Variable<float> forward(Variable<float> x) const {
    for (const auto& block : blocks) x = block->forward(x);
    return x;
  }

  int last;
  std::vector<std::unique_ptr<Block>> blocks;  // those that lie here
  std::unique_ptr<nn::Linear<Float32>> output;
};

int train(const Group& world) {
  const int tensor = world.size() % 2 == 0 ? 2 : 1;
  const ProcessMesh mesh(world, {.data = 1, .pipeline = world.size() / tensor, .tensor = tensor});
  const nn::ModelPart part = parallel::model_part(mesh);
  Model model(part);
  model.initialize({.seed = 1});
  parallel::DataParallel data_parallel(model, mesh);
  optim::AdamW<Float32> optimizer(model.store(), {.learning_rate = 0.003});

  constexpr std::int64_t rows = 16;  // of a micro-batch; a step has 4
  std::int64_t step = 0;
  const auto input = [&](int micro_batch) {
    Tensor<float> x({rows, 32});
    const std::int64_t first = (step * 4 + micro_batch) * x.numel();
    for (std::int64_t i = 0; i < x.numel(); ++i)
      x.data()[i] = static_cast<float>((first + i) * (first + i) % 65537) / 32768 - 1;
    return x;
  };
  const int stage = part.stages.front();
  parallel::PipelineStage<float> described;
  if (stage > 0) described.input = {rows, 32};
  if (stage < model.last) {
    described.output = {rows, 32};
    described.forward = [&](const Variable<float>& x, int micro) { return model.forward(stage == 0 ? input(micro) : x); };
  } else {
    described.loss = [&](const Variable<float>& x, int micro) {
      const Tensor<float> first = input(micro);
      Tensor<std::int32_t> positive({rows});
      for (std::int64_t row = 0; row < rows; ++row)
        positive.data()[row] = first.data()[row * 32] * first.data()[row * 32 + 9] > 0;
      return cross_entropy(model.output->forward(model.forward(stage == 0 ? first : x)), positive);
    };
  }
  const auto schedule = parallel::make_pipeline_schedule({.num_ranks = part.num_stages, .num_micro_batches = 4});
  parallel::Pipeline<float> pipeline(mesh, schedule, {described});
  for (; step <= 400; ++step) {
    auto reduction = data_parallel.begin_step(4);
    pipeline.run(reduction, {}, rows);
    const StepSummary summary = reduction.finish();
    optimizer.step(summary);
    if (world.rank() == 0 && step % 100 == 0) std::printf("step %3d  loss %.4f\n", static_cast<int>(step), summary.loss());
  }
  return 0;
}

int main() { return launch(BackendKind::mpi, {}, train); }
