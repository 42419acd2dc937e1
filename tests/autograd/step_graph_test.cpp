#include "trireme/autograd/step_graph.hpp"

#include "catch.hpp"
#include "trireme/autograd/parameter.hpp"

using namespace trireme;

namespace {

Tensor<std::int32_t> tokens(std::int32_t value) { return Tensor<std::int32_t>::full({3}, value); }

}  // namespace

TEST_CASE("on the CPU a step graph calls its function with the step's options and inputs") {
  FlatStore store(DType::float32);
  std::vector<std::uint64_t> steps;
  StepGraph<float> graph(store, [&](const TapeOptions& at, const auto& inputs) {
    steps.push_back(at.step);
    const Tensor<float> sum = Tensor<float>::full({}, static_cast<float>(inputs[0].data()[0] + inputs[1].data()[2]));
    return Loss<float>{.sum = Variable<float>(sum), .kept = 2, .count = 3};
  });
  CHECK_FALSE(graph.newest_loss().has_value());
  CHECK_THROWS_WITH(graph.last_loss(), "last_loss() before the first step");
  for (const std::uint64_t step : {4, 5, 6}) {
    graph.run({.step = step}, {tokens(1), tokens(static_cast<std::int32_t>(step))});
    REQUIRE(graph.newest_loss().has_value());
    CHECK(graph.newest_loss()->step == step);
    CHECK(graph.last_loss().mean == static_cast<double>(step + 1) / 2);
  }
  CHECK(steps == std::vector<std::uint64_t>{4, 5, 6});
  CHECK_FALSE(graph.is_recorded());
}

TEST_CASE("a step graph's first steps are eager") {
  FlatStore store(DType::float32);
  CHECK_THROWS_WITH(StepGraph<float>(store, {}, {.eager_steps = 0}), "a step is recorded after 1 or more eager ones, not 0");
}
