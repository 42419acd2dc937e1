#include "trireme/nn/convolution/convolution.hpp"

#include <algorithm>

#include "gradient_check.hpp"
#include "trireme/autograd/operations/pooling.hpp"

using namespace trireme;
using namespace trireme::tests;

namespace {

struct Images : nn::Module<Float64> {
  nn::Conv2d<Float64> down{*this, "down", {.in = 2, .out = 4, .kernel = 3, .stride = {2, 1}, .padding = 1, .groups = 2}};
  nn::ConvTranspose2d<Float64> up{
      *this, "up", {.in = 4, .out = 3, .kernel = {3, 2}, .stride = 2, .padding = {1, 0}, .output_padding = {1, 0}}};
  nn::Conv2d<Float64> last{*this, "last", {.in = 3, .out = 2, .kernel = 1, .bias = false}};
  Variable<double> forward(const Variable<double>& x) const {
    return last.forward(avg_pool2d(tanh(up.forward(max_pool2d(down.forward(x), {.kernel = {1, 2}}))), {.kernel = 2}));
  }
};

double largest(const Tensor<double>& tensor) {
  double result = 0;
  for (const double element : tensor.span()) result = std::max(result, std::abs(element));
  return result;
}

}  // namespace

TEST_CASE("convolution layers have torch's shapes and initial values") {
  Images model;
  CHECK(model.down.weight.info().name == "down.weight");
  CHECK(model.down.weight.info().shape == Shape{4, 1, 3, 3});
  CHECK(model.up.weight.info().shape == Shape{4, 3, 3, 2});
  CHECK(model.up.bias.info().shape == Shape{3});
  CHECK_FALSE(model.last.bias.defined());
  struct : nn::Module<Float64> {
    nn::Conv2d<Float64> wide{*this, "wide", {.in = 64, .out = 64, .kernel = 3, .bias_initializer = Initializer::constant(2)}};
    nn::ConvTranspose2d<Float64> back{*this, "back", {.in = 32, .out = 64, .kernel = {4, 2}, .groups = 2}};
  } large;
  large.initialize({.seed = 2});
  const double of_wide = 1 / std::sqrt(64.0 * 9), of_back = 1 / std::sqrt(32.0 * 8);  // 1 / sqrt(fan in)
  CHECK(largest(large.wide.weight.value()) <= of_wide);
  CHECK(largest(large.wide.weight.value()) > 0.99 * of_wide);
  CHECK(large.wide.bias.value().data()[63] == 2);
  CHECK(largest(large.back.weight.value()) <= of_back);
  CHECK(largest(large.back.weight.value()) > 0.99 * of_back);
  CHECK(largest(large.back.bias.value()) <= of_back);
  CHECK(largest(large.back.bias.value()) > 0.8 * of_back);
}

TEST_CASE("a convolution of sequences begins as one of images or volumes of height 1 does") {
  struct Sequences : nn::Module<Float64> {
    nn::Conv1d<Float64> layer{*this, "layer", {.in = 4, .out = 6, .kernel = 3, .groups = 2}};
    nn::ConvTranspose1d<Float64> back{*this, "back", {.in = 6, .out = 4, .kernel = 3, .groups = 2}};
  } sequences;
  struct Flat : nn::Module<Float64> {
    nn::Conv2d<Float64> layer{*this, "layer", {.in = 4, .out = 6, .kernel = {1, 3}, .groups = 2}};
    nn::ConvTranspose2d<Float64> back{*this, "back", {.in = 6, .out = 4, .kernel = {1, 3}, .groups = 2}};
  } flat;
  struct Volumes : nn::Module<Float64> {
    nn::Conv3d<Float64> layer{*this, "layer", {.in = 4, .out = 6, .kernel = {1, 1, 3}, .groups = 2}};
  } volumes;
  sequences.initialize({.seed = 7});
  flat.initialize({.seed = 7});
  volumes.initialize({.seed = 7});
  CHECK(std::ranges::equal(sequences.layer.weight.value().span(), flat.layer.weight.value().span()));
  CHECK(std::ranges::equal(sequences.layer.bias.value().span(), flat.layer.bias.value().span()));
  CHECK(std::ranges::equal(sequences.back.weight.value().span(), flat.back.weight.value().span()));
  CHECK(std::ranges::equal(volumes.layer.weight.value().span(), flat.layer.weight.value().span()));
}

TEST_CASE("gradients of convolution layers") {
  Images model;
  model.initialize({.seed = 2});
  const auto x = random({2, 5, 6, 2}, 1);
  CHECK(model.forward(Variable<double>(x)).shape() == Shape{2, 3, 3, 2});
  expect_passed(testing::check_parameter_gradients(model.store(), [&] { return model.forward(Variable<double>(x)); }));
}

TEST_CASE("convolution layers refuse options that do not fit, by their name") {
  struct Root : nn::Module<Float64> {
  } root;
  CHECK_THROWS_WITH((nn::Conv2d<Float64>(root, "stem", {.in = 3, .out = 4})), ContainsSubstring("stem: a convolution needs"));
  CHECK_THROWS_WITH((nn::Conv2d<Float64>(root, "mix", {.in = 3, .out = 4, .kernel = 3, .groups = 2})),
                    ContainsSubstring("mix: 2 groups do not divide 3 and 4 channels"));
  CHECK_THROWS_WITH((nn::Conv3d<Float64>(root, "deep", {.in = 3, .out = 4, .kernel = {1, 0, 2}})),
                    ContainsSubstring("deep: a convolution needs in, out and kernel above 0, got 3, 4 and 0"));
  CHECK_THROWS_WITH((nn::ConvTranspose1d<Float64>(root, "up", {.in = 3, .out = 4, .kernel = -1})),
                    ContainsSubstring("up: a convolution needs in, out and kernel above 0, got 3, 4 and -1"));
  CHECK_THROWS_WITH((nn::Conv1d<Float64>(root, "none", {.in = 3, .out = 4, .kernel = 1, .groups = 0})),
                    ContainsSubstring("none: 0 groups do not divide"));
}
