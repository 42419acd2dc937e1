#include "trireme/nn/base/flow.hpp"

#include <algorithm>
#include <vector>

#include "gradient_check.hpp"
#include "trireme/nn/layers/layers.hpp"
#include "trireme/nn/staged/staged.hpp"

using namespace trireme;
using namespace trireme::tests;

namespace {

constexpr std::int64_t features = 6;

struct Pair {
  Variable<float> left, right;
  void each(auto&& visit) { visit(left), visit(right); }
};

struct Flow {
  Variable<float> main = {};
  std::vector<Variable<float>> skips = {};
  std::vector<Pair> pairs = {};
  Tensor<std::int32_t> lengths = {};
  Variable<double> none = {};
  Tensor<float> empty = {};
  void each(auto&& visit) { visit(main), visit(skips), visit(pairs), visit(lengths), visit(none), visit(empty); }
};

// Contributions to where a recorded value came from.
struct Source {
  explicit Source(const Shape& shape, std::uint64_t stream) : value(random<float>(shape, stream)) {}
  Variable<float> recorded() {
    return watch(value, [this](const Tensor<float>& sum) { gradient = elements(sum); });
  }
  Tensor<float> value;
  std::vector<float> gradient;
};

}  // namespace

TEST_CASE("a flow of several values is packed and unpacked as constants") {
  const Flow flow{.main = random<float>({2, 3}, 1),
                  .skips = {random<float>({4}, 2), {}, random<float>({1, 2}, 3)},
                  .pairs = {{.left = random<float>({2}, 4), .right = {}}},
                  .lengths = Tensor<std::int32_t>::full({2}, 7),
                  .empty = Tensor<float>({0, 3})};
  const nn::PackedFlow packed = nn::pack(flow);
  CHECK(packed.parts.size() == 6);
  CHECK(std::ranges::none_of(packed.parts, &nn::FlowPart::with_gradient));
  const Flow unpacked = nn::unpack<Flow>(packed);
  CHECK(unpacked.main.value().data() == flow.main.value().data());  // the same memory
  REQUIRE(unpacked.skips.size() == 3);
  CHECK(elements(unpacked.skips[0].value()) == elements(flow.skips[0].value()));
  CHECK_FALSE(unpacked.skips[1].value().defined());
  CHECK(unpacked.skips[2].shape() == Shape{1, 2});
  REQUIRE(unpacked.pairs.size() == 1);
  CHECK(elements(unpacked.pairs[0].left.value()) == elements(flow.pairs[0].left.value()));
  CHECK_FALSE(unpacked.pairs[0].right.value().defined());
  CHECK(elements(unpacked.lengths) == std::vector<std::int32_t>{7, 7});
  CHECK_FALSE(unpacked.none.value().defined());
  CHECK(unpacked.empty.shape() == Shape{0, 3});
  CHECK_FALSE(unpacked.main.gradient().needed());
  CHECK(nn::unpack<Flow>(nn::pack(Flow())).skips.empty());
}

TEST_CASE("gradients go back through a packed flow, from one tape to another") {
  Source a({2, 3}, 1), b({2, 3}, 2), c({3}, 3);
  Tape first;
  const Flow sent{.main = scale(a.recorded(), 2),
                  .skips = {b.recorded(), Variable<float>(random<float>({2}, 4))},
                  .pairs = {{.left = {}, .right = c.recorded()}},
                  .lengths = Tensor<std::int32_t>::full({2}, 7)};
  nn::GiveGradients give;
  const nn::PackedFlow packed = nn::pack(sent, &give);
  CHECK(give.size() == 3);  // main, the first skip and the right one of the pair
  std::vector<bool> with_gradient;
  for (const nn::FlowPart& part : packed.parts) with_gradient.push_back(part.with_gradient);
  CHECK(with_gradient == std::vector<bool>{true, true, false, true, false});
  first.suspend();

  std::vector<nn::FlowPart> gradients;
  {
    Tape second;
    const Flow taken = nn::unpack<Flow>(packed, &gradients);
    CHECK((taken.main.gradient().needed() && taken.skips[0].gradient().needed() && taken.pairs[0].right.gradient().needed()));
    CHECK_FALSE(taken.skips[1].gradient().needed());
    sum(add(scale(taken.main, 5), taken.skips[0])).backward();
  }
  REQUIRE(gradients.size() == 3);
  CHECK(gradients[0].memory != nullptr);
  CHECK(gradients[1].memory != nullptr);
  CHECK(gradients[2].memory == nullptr);  // nothing has read it

  first.resume();
  give[0](gradients[0]);
  give[1](gradients[1]);
  give[2](nn::detail::part_of(Tensor<float>::full({3}, 4)));
  first.run_backward();
  CHECK(a.gradient == std::vector<float>(6, 10));
  CHECK(b.gradient == std::vector<float>(6, 1));
  CHECK(c.gradient == std::vector<float>(3, 4));
}

TEST_CASE("a flow that is not made of what was packed is refused") {
  const nn::PackedFlow packed = nn::pack(Variable<float>(random<float>({2}, 1)));
  CHECK_THROWS_WITH(nn::unpack<Variable<double>>(packed), ContainsSubstring("is not the layout of a flow"));
  CHECK_THROWS_AS(nn::unpack<Pair>(packed), Error);
  CHECK_THROWS_AS(nn::unpack<Flow>(packed), Error);
}

TEST_CASE("a model whose layers hand on several values is cut into stages as any other") {
  struct Skipping : nn::Staged<Float32, Cpu, Variable<float>, Flow> {
    explicit Skipping(const ModelContext& context) : Staged(context) {
      const auto begin = [this](const Variable<float>& x) { return Flow{.main = down.forward(x), .skips = {x}}; };
      const auto end = [this](const Flow& x) { return add(up.forward(x.main), x.skips[0]); };
      layers(layer({down}, begin), layer({up}, end));
    }
    nn::Linear<Float32> down{*this, "down", {.in = features, .out = 2}};
    nn::Linear<Float32> up{*this, "up", {.in = 2, .out = features}};
  };
  const auto run = [&](int stages) {
    Skipping model(ModelContext{.chunks = stages});
    model.initialize({.seed = 2});
    return elements(model.forward(random<float>({3, features}, 1)).value());
  };
  CHECK(run(2) == run(1));
}
