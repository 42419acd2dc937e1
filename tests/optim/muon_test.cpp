// Which parameters Muon makes orthogonal, and which it leaves to AdamW.

#include "trireme/optim/muon.hpp"

#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "catch.hpp"
#include "trireme/core/error.hpp"
#include "trireme/optim/adamw.hpp"

using namespace trireme;

namespace {

struct Weights {
  Model model{DType::float32};
  FlatStore& store = model.store();
  int matrix = store.add("matrix", {6, 4}, Initializer::constant(1));
  int bias = store.add("bias", {6}, Initializer::constant(1));
  int embedding = store.add("embedding", {5, 4}, Initializer::constant(1));
  int empty = store.add("empty", {0, 4}, Initializer::constant(1));

  Weights() { store.initialize<float>(1); }
  void step(optim::Optimizer<Float32>& optimizer, int number) {
    const auto gradients = store.gradients<float>().span();
    for (std::size_t at = 0; at < gradients.size(); ++at) {
      gradients[at] = std::sin(static_cast<float>(at * at) + static_cast<float>(number));
    }
    optimizer.step({.target_weight = 1, .gradient_norm = 1, .used = {true, true, true, true}});
  }
  std::vector<float> values(int parameter) {
    const auto values = store.values<float>(parameter).span();
    return {values.begin(), values.end()};
  }
};

}  // namespace

TEST_CASE("what is no matrix, or does not adapt, takes AdamW's steps") {
  Weights weights;
  optim::Muon<Float32> muon(
      weights.model,
      {.learning_rate = 0.02, .adamw_factor = 0.5, .beta2 = 0.95, .groups = {{.pattern = "embed*", .adapts = false}}});
  Weights others;
  optim::AdamW<Float32> adamw(others.model, {.learning_rate = 0.01, .beta2 = 0.95, .weight_decay = 0.1});
  for (int number = 0; number < 3; ++number) {
    weights.step(muon, number);
    others.step(adamw, number);
    CHECK(weights.values(weights.bias) == others.values(others.bias));
    CHECK(weights.values(weights.embedding) == others.values(others.embedding));
    CHECK(weights.values(weights.matrix) != others.values(others.matrix));
  }
}

TEST_CASE("the direction of a matrix has singular values near 1, whatever the scale of its gradient") {
  for (const double scale : {1.0, 1e-6, 1e6}) {
    CAPTURE(scale);
    Weights weights;
    optim::Muon<Float32> muon(weights.model, {.learning_rate = 1, .weight_decay = 0, .iterations = 10, .epsilon = 1e-12});
    const auto gradients = weights.store.gradients<float>().span();
    for (std::size_t at = 0; at < gradients.size(); ++at) {
      gradients[at] = static_cast<float>(scale) * std::sin(static_cast<float>(at * at));
    }
    muon.step({.target_weight = 1, .gradient_norm = 1, .used = {true, true, true, true}});
    const auto after = weights.values(weights.matrix);
    std::vector<double> direction;
    for (const float value : after) direction.push_back((1 - static_cast<double>(value)) / std::sqrt(6.0 / 4));
    double squares = 0;  // of four singular values
    for (const double element : direction) squares += element * element;
    CHECK(squares > 4 * 0.6 * 0.6);
    CHECK(squares < 4 * 1.3 * 1.3);
  }
}

TEST_CASE("iterations in bfloat16 go where those in float go") {
  Weights rounded;
  optim::Muon<Float32> in_bfloat16(rounded.model, {.learning_rate = 1, .weight_decay = 0});
  Weights exact;
  optim::Muon<Float32> in_float(exact.model, {.learning_rate = 1, .weight_decay = 0, .bfloat16 = false});
  rounded.step(in_bfloat16, 1);
  exact.step(in_float, 1);
  const auto got = rounded.values(rounded.matrix);
  const auto wanted = exact.values(exact.matrix);
  CHECK(got != wanted);
  for (std::size_t at = 0; at < got.size(); ++at) CHECK(got[at] == Approx(wanted[at]).margin(0.03).epsilon(0));
}

TEST_CASE("a gradient of zeros moves a matrix by its decay alone") {
  Weights weights;
  optim::Muon<Float32> muon(weights.model, {.learning_rate = 0.5, .weight_decay = 0.5});
  for (float& gradient : weights.store.gradients<float>().span()) gradient = 0;
  muon.step({.target_weight = 1, .gradient_norm = 0, .used = {true, true, true, true}});
  for (const float value : weights.values(weights.matrix)) CHECK(value == 0.75F);
}

TEST_CASE("Muon refuses a matrix of which a tensor axis holds a part, unless AdamW updates it") {
  Model model(DType::float32);
  Placement placement{.shape = {8, 4}, .dim = 0, .ranges = {{0, 4}}};
  model.store().add("split.weight", placement, Initializer::constant(1));
  CHECK_THROWS_WITH(
      optim::Muon<Float32>(model),
      ContainsSubstring("Muon needs whole matrices, and a tensor or expert axis splits split.weight: train without"));
  const optim::Muon<Float32> others(model, {.groups = {{.pattern = "split.*", .adapts = false}}});
}

TEST_CASE("Muon refuses options that make no sense") {
  Weights weights;
  CHECK_THROWS_WITH(optim::Muon<Float32>(weights.model, {.momentum = 1}), ContainsSubstring("momentum lies in [0, 1), got 1"));
  CHECK_THROWS_WITH(optim::Muon<Float32>(weights.model, {.iterations = -1}), ContainsSubstring("iterations are 0 or more"));
  CHECK_THROWS_WITH(optim::Muon<Float32>(weights.model, {.epsilon = 0}), ContainsSubstring("epsilon is above 0"));
  CHECK_THROWS_WITH(optim::Muon<Float32>(weights.model, {.adamw_factor = -1}), ContainsSubstring("adamw_factor is finite"));
  CHECK_THROWS_WITH(optim::Muon<Float32>(weights.model, {.beta1 = 1}), ContainsSubstring("Muon's betas lie in [0, 1)"));
}
