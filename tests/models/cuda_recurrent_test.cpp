#include "models/cuda_compare.hpp"
#include "trireme/models/architectures/lstm_lm.hpp"
#include "trireme/optim/adamw.hpp"

// Recurrent layers and an LSTM language model on the GPU against the same ones on the CPU, which other tests compare with
// PyTorch.
using namespace trireme;
using namespace trireme::tests;

namespace {

constexpr models::LstmLmOptions options{.vocabulary = 60, .embedding = 24, .hidden = 40, .layers = 2, .dropout = 0.1};

// The losses of successive parts of a text, with the state carried from one to the next.
template <typename D>
std::vector<double> train(int steps) {
  models::LstmLm<Float32, D> model(options, {.rows = {.batch_size = 4, .own = {0, 4}}});
  model.initialize({.seed = 1});
  optim::AdamW<Float32, D> optimizer(model, {.learning_rate = 1e-2});
  std::mt19937 generator(5);
  std::vector<double> losses;
  for (int step = 0; step < steps; ++step) {
    const auto tokens = random_tokens({4, 12}, options.vocabulary, generator);
    Tape tape({.seed = 3, .step = static_cast<std::uint64_t>(step)});
    const data::BasicTokenBatch<D> batch{.tokens = tokens.to<D>(), .targets = tokens.to<D>(), .continues = step > 0};
    const auto loss = model.loss(model.forward(batch), batch);
    loss.backward();
    losses.push_back(loss.mean());
    const auto parameters = static_cast<std::size_t>(model.store().num_parameters());
    optimizer.step({.loss_sum = losses.back(), .target_weight = 1, .used = std::vector<bool>(parameters, true)});
  }
  return losses;
}

struct OutAndGradients {
  std::vector<float> out;
  std::vector<float> gradients;
};

// Both directions of two layers over rows that end early.
template <ops::RecurrentCell kind, typename D>
OutAndGradients rows_of_lengths() {
  nn::Recurrent<Float32, kind, D> module({.in = 10, .hidden = 14, .layers = 2, .bidirectional = true});
  module.initialize({.seed = 2});
  std::mt19937 generator(6);
  std::normal_distribution<float> normal;
  Tensor<float> x({3, 7, 10});
  for (float& element : x.span()) element = normal(generator);
  const auto lengths = Tensor<std::int32_t>::from({3}, std::vector<std::int32_t>{4, 7, 1});
  Tape tape;
  const auto result = module.forward(Variable<float, D>(x.to<D>()), {}, lengths.to<D>());
  auto total = sum(multiply(result.out, result.out));
  for (const auto& state : result.state.hidden) total = add(total, sum(state));
  total.backward();
  const Tensor<float> out = result.out.value().template to<Cpu>();
  return {{out.data(), out.data() + out.numel()}, tests::gradients(module)};
}

template <ops::RecurrentCell kind>
void check_rows_of_lengths() {
  const auto here = rows_of_lengths<kind, Cpu>();
  const auto there = rows_of_lengths<kind, Cuda>();
  CHECK(distance(there.out, here.out) < 1e-5);
  CHECK(distance(there.gradients, here.gradients) < 1e-4);
}

}  // namespace

TEST_CASE("an LSTM language model on the GPU learns as one on the CPU") {
  const std::vector<double> there = train<Cuda>(10);
  const std::vector<double> here = train<Cpu>(10);
  REQUIRE(here.back() < here.front());
  for (std::size_t step = 0; step < here.size(); ++step) {
    CAPTURE(step);
    CHECK(there[step] == Approx(here[step]).epsilon(1e-4));
  }
}

TEST_CASE("both directions over rows of different lengths give on the GPU what they give on the CPU") {
  check_rows_of_lengths<ops::RecurrentCell::lstm>();
  check_rows_of_lengths<ops::RecurrentCell::gru>();
}

TEST_CASE("an LSTM language model gives the same bits twice on the GPU") { CHECK(train<Cuda>(5) == train<Cuda>(5)); }
