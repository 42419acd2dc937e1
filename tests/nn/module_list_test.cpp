// Modules in a row: ModuleList and Sequential.

#include "trireme/nn/base/module_list.hpp"

#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "trireme/nn/base/sequential.hpp"
#include "trireme/nn/layers/layers.hpp"

using namespace trireme;

TEST_CASE("modules of a list have names") {
  struct Net : nn::Module<Float32> {
    using Linears = nn::ModuleList<nn::Linear<Float32>>;
    static nn::LinearOptions options(std::int64_t out) { return {.in = 2, .out = out, .bias = false}; }
    Linears same{*this, "same", 2, options(3)};
    Linears different{*this, "different", std::vector{options(4), options(5)}};
    Linears named{*this, std::vector<std::pair<std::string, nn::LinearOptions>>{{"query", options(6)}, {"key", options(7)}}};
    Linears none{*this, "none", 0, options(3)};
  };
  Net net;
  std::vector<std::string> names;
  for (int index = 0; index < net.store().num_parameters(); ++index) names.push_back(net.store().parameter(index).name);
  CHECK(names == std::vector<std::string>{"same.0.weight", "same.1.weight", "different.0.weight", "different.1.weight",
                                          "query.weight", "key.weight"});
  CHECK(net.different[1].weight.info().shape == Shape{5, 2});
  CHECK(net.named[1].weight.info().shape == Shape{7, 2});
  CHECK((net.same.size() == 2 && net.named.size() == 2 && net.none.size() == 0));
  CHECK_THROWS_WITH(Net::Linears(net, "less", -1, Net::options(3)), ContainsSubstring("less has 0 or more, got -1"));
}

TEMPLATE_TEST_CASE("a Sequential computes one thing after the other, numbered as in PyTorch", "", Float32, MixedBfloat16) {
  constexpr std::int64_t features = 6;
  using T = typename TestType::Compute;
  struct Net : nn::Module<TestType> {
    Net() {
      first = &mlp.template add<nn::Linear<TestType>>(nn::LinearOptions{.in = features, .out = features});
      mlp.add([](const auto& x) { return relu(x); });
      norm = &mlp.template add<nn::LayerNorm<TestType>>(nn::LayerNormOptions{.width = features});
    }
    nn::Sequential<TestType> mlp{*this, "mlp"};
    const nn::Linear<TestType>* first = nullptr;
    const nn::LayerNorm<TestType>* norm = nullptr;
  };
  Net net;
  net.initialize({.seed = 3});
  CHECK(net.store().find("mlp.0.weight") >= 0);
  CHECK(net.store().find("mlp.2.bias") >= 0);
  CHECK(net.store().num_parameters() == 4);
  const Variable<T> x(Tensor<T>::full({2, features}, T(0.5F)));
  const auto wanted = net.norm->forward(cast<float>(relu(net.first->forward(x))));
  const auto y = net.mlp.forward(x);
  for (std::int64_t i = 0; i < y.value().numel(); ++i) {
    CHECK(static_cast<float>(y.value().data()[i]) == static_cast<float>(wanted.value().data()[i]));
  }
}
