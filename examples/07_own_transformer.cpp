// A transformer of your own, with attention and MLP side by side, and data, pipeline and tensor parallelism. Run it alone, or
// by mpirun -n 4 07_own_transformer --pipeline-parallel 2 --tensor-parallel 2; with 8 ranks there are two replicas.
#include <trireme/trireme.hpp>
using namespace trireme;

constexpr std::int64_t length = 64;  // tokens of its context
constexpr std::int64_t width = 64;

struct Block : nn::Module<Float32> {
  using Module::Module;
  Stream forward(const Stream& x, const data::TokenBatch& batch) const {
    const Value y = norm.forward(x);
    return x + attention.forward(y, batch.time()) + down.forward(gelu(up.forward(y)));
  }

  LayerNorm norm{*this, "norm", {.width = width}};
  CausalSelfAttention attention{*this, "attention", {.heads = 4, .width = width}};
  Linear up{*this, "up", {.in = width, .out = 4 * width, .split = nn::TensorSplit::column}};
  Linear down{*this, "down", {.in = 4 * width, .out = width, .split = nn::TensorSplit::row}};
};

struct Net : nn::Staged<Float32, Cpu, data::TokenBatch> {
  explicit Net(const ModelContext& context) : Staged(context) { layers(embed, blocks, nn::chain(norm, output)); }
  Loss<float> loss(const Value& y, const data::TokenBatch& batch) const { return output.loss(y, batch.targets); }

  TokenEmbedding embed{*this, "embed", {.vocabulary = 256, .positions = length, .width = width}};
  nn::ModuleList<Block> blocks{*this, "block", 4};
  LayerNorm norm{*this, "norm", {.width = width}};
  TokenLogits output{*this, "output", embed.tokens};  // tied
};

void train(trainer::Run& run, const std::string& text) {
  const auto [training, validation] = data::split(data::TokenDataset::from_bytes(data::read_text(text)), 0.1);
  const data::WindowLoader windows(training, {.batch = run.batch(), .length = length});
  Net net(run.context());
  optim::AdamW optimizer(net, {.learning_rate = 0.003, .weight_decay = 0.1});
  run.add(net, optimizer);
  for (auto& step : run.steps(windows)) {
    step.backward(net, step.batches());
    step.update(optimizer);
    if (!run.due(Steps{30})) continue;
    const Mean loss = run.evaluate(net, data::TokenWindows(validation, length));
    run.report({{"validation_loss", loss}, {"perplexity", perplexity(loss)}});
  }
}

int main(int argc, char** argv) {
  std::string text = "LICENSE";
  trainer::CommandLine line("Trains a transformer on the bytes of a text");
  line.add("text", text, "a file, or a folder of them");
  return trainer::launch(argc, argv, line, {.until = Steps{60}, .batch_size = 16, .micro_batch_size = 4},
                         [&](trainer::Run& run) { train(run, text); });
}
