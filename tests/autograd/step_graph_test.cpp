#include "trireme/autograd/step_graph.hpp"

#include "catch.hpp"

using namespace trireme;

namespace {

StepSummary summary_of(double loss_sum, double target_weight, double norm) {
  StepSummary summary;
  summary.set({.loss_sum = loss_sum, .target_weight = target_weight, .gradient_norm = norm});
  return summary;
}

}  // namespace

TEST_CASE("on the CPU a step graph calls its function with the step's options and inputs") {
  FlatStore store(DType::float32);
  std::vector<std::uint64_t> steps;
  StepGraph<Cpu, std::int32_t, float> graph(store, [&](const TapeOptions& at, const auto& tokens, const auto& images) {
    steps.push_back(at.step);
    return summary_of(tokens.data()[0] + static_cast<double>(images.data()[2]), 2, 0.5);
  });
  CHECK_FALSE(graph.newest_result().has_value());
  CHECK_THROWS_WITH(graph.last_result(), "last_result() before the first step");
  for (const std::uint64_t step : {4, 5, 6}) {
    graph.run({.step = step}, Tensor<std::int32_t>::full({3}, 1), Tensor<float>::full({3}, static_cast<float>(step)));
    REQUIRE(graph.newest_result().has_value());
    CHECK(graph.newest_result()->step == step);
    CHECK(graph.last_result().loss == static_cast<double>(step + 1) / 2);
    CHECK(graph.last_result().gradient_norm == 0.5);
  }
  CHECK(steps == std::vector<std::uint64_t>{4, 5, 6});
  CHECK_FALSE(graph.is_recorded());
}

TEST_CASE("a step graph keeps the buffers before each step") {
  FlatStore store(DType::float32);
  const int mean = store.add_buffer("mean", {2}, 1);
  const auto value = [&] { return store.buffers().read_values<float>(mean).data()[1]; };
  StepGraph<Cpu> graph(store, [&](const TapeOptions&) {
    CHECK(store.buffers().are_kept());
    store.buffers().write_values(mean, Tensor<float>::full({2}, 5));
    const bool no = false;
    store.buffers().restore_if(&no);
    CHECK(value() == 5);
    const bool yes = true;
    store.buffers().restore_if(&yes);
    CHECK(value() == 1);
    store.buffers().write_values(mean, Tensor<float>::full({2}, 6));
    return summary_of(0, 0, 0);
  });
  graph.run({});
  CHECK(graph.last_result().loss == 0);
  CHECK_FALSE(store.buffers().are_kept());
  store.buffers().restore();
  CHECK(value() == 6);
}

TEST_CASE("a step graph's first steps are eager") {
  FlatStore store(DType::float32);
  CHECK_THROWS_WITH(StepGraph<Cpu>(store, {}, {.eager_steps = 0}), "a step is recorded after 1 or more eager ones, not 0");
}
