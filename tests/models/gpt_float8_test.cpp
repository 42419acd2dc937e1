#include "catch.hpp"
#include "temporary_folder.hpp"
#include "trireme/models/architectures/gpt.hpp"
#include "trireme/nn/weights/weights.hpp"
#include "trireme/optim/adamw.hpp"

// A GPT whose blocks multiply 8-bit operands.
using namespace trireme;

namespace {

using Gpt = models::Gpt<MixedBfloat16>;

models::GptOptions options(Float8Scaling fp8) {
  return {.layers = 2, .heads = 2, .width = 32, .block = 16, .vocabulary = 48, .fp8 = fp8};
}

Tensor<std::int32_t> tokens(std::int64_t batch, std::int64_t time, std::int32_t first) {
  Tensor<std::int32_t> tokens({batch, time});
  for (std::int64_t i = 0; i < tokens.numel(); ++i) tokens.data()[i] = static_cast<std::int32_t>((7 * i + first) % 48);
  return tokens;
}

std::vector<double> train(Gpt& model, int steps) {
  model.initialize({.seed = 1});
  optim::AdamW<MixedBfloat16> optimizer(model, {.learning_rate = 1e-2});
  std::vector<double> losses;
  for (int step = 0; step < steps; ++step) {
    Tape tape;
    const auto loss = model.loss(tokens(4, 16, 0), tokens(4, 16, 7));
    loss.backward();
    losses.push_back(loss.mean());
    const auto parameters = static_cast<std::size_t>(model.store().num_parameters());
    optimizer.step({.loss_sum = 64 * losses.back(), .target_weight = 64, .used = std::vector<bool>(parameters, true)});
  }
  return losses;
}

}  // namespace

TEST_CASE("a GPT of 8-bit products learns as one of bfloat16") {
  Gpt exact(options(Float8Scaling::none));
  const std::vector<double> expected = train(exact, 12);
  CHECK(expected.back() < 0.7 * expected.front());
  for (const Float8Scaling scaling : {Float8Scaling::current, Float8Scaling::delayed}) {
    Gpt model(options(scaling));
    const std::vector<double> losses = train(model, 12);
    CHECK(losses != expected);
    for (std::size_t step = 0; step < losses.size(); ++step) {
      CAPTURE(static_cast<int>(scaling), step);
      CHECK(losses[step] == Approx(expected[step]).epsilon(0.05));
    }
    CHECK(model.next_token_logits(tokens(1, 5, 0)).shape() == Shape{1, 48});  // 5 rows are no multiple of 16
  }
}

TEST_CASE("what delayed scaling keeps is no weight") {
  const tests::TemporaryFolder folder;
  const std::string path = folder.path() / "gpt.safetensors";
  Gpt delayed(options(Float8Scaling::delayed)), read(options(Float8Scaling::delayed)), plain(options(Float8Scaling::none));
  train(delayed, 2);
  nn::save_weights<float>(delayed, path);
  for (Gpt* model : {&read, &plain}) {
    nn::load_weights<float>(*model, path);
    CHECK(std::ranges::equal(model->store().values<float>().span(), delayed.store().values<float>().span()));
  }
  State state;
  delayed.store().buffers().add_to(state, "");
  CHECK(state.tensors().size() == 2 * 4 * 3);  // of each linear layer, for checkpoints
}
