// The state of Adafactor, and its relative steps.

#include "trireme/optim/adafactor.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "catch.hpp"
#include "trireme/core/error.hpp"

using namespace trireme;

namespace {

struct Weights {
  Model model{DType::float32};
  FlatStore& store = model.store();
  int matrix = store.add("matrix", {6, 4}, Initializer::constant(2));
  int kernel = store.add("kernel", {3, 2, 2, 5}, Initializer::constant(2));
  int bias = store.add("bias", {6}, Initializer::constant(2));
  int scalar = store.add("scalar", Shape{}, Initializer::constant(2));
  int empty = store.add("empty", {0, 4}, Initializer::constant(2));
  int frozen = store.add("frozen", {3, 4}, Initializer::constant(2));

  Weights() {
    store.freeze(frozen);
    store.initialize<float>(1);
  }
  void step(optim::Optimizer<Float32>& optimizer, float gradient, double learning_rate = 0.01) {
    std::ranges::fill(store.gradients<float>().span(), gradient);
    optimizer.step({.target_weight = 1, .gradient_norm = 1, .used = {true, true, true, true, true, false}},
                   {.learning_rate = learning_rate});
  }
  float value(int parameter) { return store.values<float>(parameter).data()[0]; }
};

}  // namespace

TEST_CASE("Adafactor keeps rows and columns of matrices, and all of vectors") {
  Weights weights;
  optim::Adafactor<Float32> optimizer(weights.model);
  State state;
  optimizer.add_to(state);
  std::vector<std::string> names;
  for (const StateTensor& tensor : state.tensors()) {
    std::string name = tensor.name;
    for (const std::int64_t dim : tensor.shape.dims()) name += " " + std::to_string(dim);
    names.push_back(name);
  }
  CHECK(names == std::vector<std::string>{"optimizer.row_var.matrix 1 6", "optimizer.col_var.matrix 1 4",
                                          "optimizer.row_var.kernel 6 2", "optimizer.col_var.kernel 6 5",
                                          "optimizer.variance.bias 6", "optimizer.variance.scalar"});
}

TEST_CASE("Adafactor's steps are relative to the weights, unless a group does not adapt") {
  for (const float gradient : {1e-3F, 1.0F, 1e4F}) {
    CAPTURE(gradient);
    Weights weights;
    optim::Adafactor<Float32> optimizer(weights.model, {.groups = {{.pattern = "bias", .adapts = false}}});
    weights.step(optimizer, gradient);
    for (const int parameter : {weights.matrix, weights.kernel, weights.scalar}) {
      CHECK(weights.value(parameter) == Approx(2 - 0.01 * 2));
    }
    CHECK(weights.value(weights.bias) == Approx(2 - 0.01));
    CHECK(weights.value(weights.frozen) == 2);
    weights.step(optimizer, -gradient, 0.9);  // in the second step the rate is at most 1 / sqrt(2)
    CHECK(weights.value(weights.bias) == Approx(1.99 + std::sqrt(0.5)));
  }
}

TEST_CASE("a gradient of zeros moves nothing") {
  Weights weights;
  optim::Adafactor<Float32> optimizer(weights.model);
  weights.step(optimizer, 0);
  for (const int parameter : {weights.matrix, weights.kernel, weights.bias, weights.scalar})
    CHECK(weights.value(parameter) == 2);
}

TEST_CASE("Adafactor refuses a parameter of which a tensor axis holds a part, and options that make no sense") {
  Model model(DType::float32);
  model.store().add("split.weight", Placement{.shape = {8, 4}, .dim = 0, .ranges = {{0, 4}}}, Initializer::constant(1));
  CHECK_THROWS_WITH(optim::Adafactor<Float32>(model),
                    ContainsSubstring("Adafactor needs whole parameters, and a tensor or expert axis splits split.weight"));
  Weights weights;
  CHECK_THROWS_WITH(optim::Adafactor<Float32>(weights.model, {.beta2_decay = 0.5}), ContainsSubstring("is 0 or less, got 0.5"));
  CHECK_THROWS_WITH(optim::Adafactor<Float32>(weights.model, {.epsilon1 = 0}), ContainsSubstring("epsilon1 is above 0"));
  CHECK_THROWS_WITH(optim::Adafactor<Float32>(weights.model, {.clip = 0.5}), ContainsSubstring("clip is 1 or more, got 0.5"));
}
