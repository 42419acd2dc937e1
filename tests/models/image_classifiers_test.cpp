#include <algorithm>
#include <string>
#include <vector>

#include "catch.hpp"
#include "trireme/models/cnn.hpp"
#include "trireme/models/resnet.hpp"

using namespace trireme;

namespace {

class Order final : public GradientListener {
 public:
  void on_final(int parameter) override { parameters.push_back(parameter); }
  std::vector<int> parameters;
};

// The modules of parameters, in the order in which backward completes their gradients, and in that of the store.
template <typename Model>
void check_order(Model& model, const Shape& images) {
  model.initialize({.seed = 1});
  Order order;
  Tape tape;
  tape.listen(model.store(), order);
  model.loss(Tensor<float>::full(images, 0.5F), Tensor<std::int32_t>::full({images[0]}, 1)).backward();
  const auto modules = [&](std::span<const int> parameters) {
    std::vector<std::string> names;
    for (const int parameter : parameters) {
      const std::string& name = model.store().parameter(parameter).name;
      const std::string module = name.substr(0, name.rfind('.'));
      if (names.empty() || names.back() != module) names.push_back(module);
    }
    return names;
  };
  CHECK(modules(order.parameters) == modules(model.store().layout()));
}

}  // namespace

TEST_CASE("backward of a CNN completes gradients in the order of the store: buckets can start early") {
  models::Cnn<Float32> model({.image = 8, .first = 4, .second = 4, .hidden = 8});
  check_order(model, {2, 8, 8, 1});
}

TEST_CASE("a ResNet of basic blocks and one of bottlenecks have torchvision's parameters") {
  const auto count = [](models::ResNetOptions options) {
    options.stem = models::ResNetOptions::Stem::imagenet;
    options.classes = 1000;
    return models::ResNet<Float32>(options).store().num_elements();
  };
  CHECK(count(models::ResNetOptions::resnet18()) == 11'689'512);
  CHECK(count(models::ResNetOptions::resnet50()) == 25'557'032);
}

TEST_CASE("a ResNet with the stem for large images reads them") {
  models::ResNet<Float32> model({.block = models::ResNetOptions::Block::bottleneck,
                                 .stem = models::ResNetOptions::Stem::imagenet,
                                 .widths = {4, 8},
                                 .blocks = {1, 2}});
  model.initialize({.seed = 1});
  CHECK(model.logits(Tensor<float>::full({2, 40, 36, 3}, 0.5F)).shape() == Shape{2, 10});
  CHECK_THROWS_AS(model.logits(Tensor<float>::full({2, 40, 36, 1}, 0.5F)), Error);
}
