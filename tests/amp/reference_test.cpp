#include <cmath>
#include <numeric>

#include "catch.hpp"
#include "fixtures.hpp"
#include "trireme/amp/grad_scaler.hpp"
#include "trireme/optim/sgd.hpp"

using namespace trireme;
using nlohmann::json;

namespace {

struct NoOptimizer {
  struct Options {};
  bool step(const StepSummary& summary, const Options&) { return summary.is_finite(); }
  void skip_step() {}
  static StepSummary decidable(StepSummary summary) { return summary; }
};

amp::GradScalerOptions scaler_options(const json& hyper) {
  return {.init_scale = hyper.at("init_scale"),
          .growth_factor = hyper.at("growth_factor"),
          .backoff_factor = hyper.at("backoff_factor"),
          .growth_interval = hyper.at("growth_interval")};
}

}  // namespace

TEST_CASE("the loss scale follows the reference") {
  const auto fixtures = tests::fixtures_of_kind("grad_scaler");
  REQUIRE(!fixtures.empty());
  for (const tests::Fixture& fixture : fixtures) {
    for (const json& run : tests::read_json(fixture.file)) {
      INFO(run.at("name").get<std::string>());
      amp::GradScaler scaler(scaler_options(run.at("options")));
      NoOptimizer optimizer;
      std::size_t row = 0;
      std::int64_t step = 0;
      for (const json& part : run.at("script_run_length")) {
        for (int repeat = 0; repeat < part[1].get<int>(); ++repeat, ++step) {
          const double before = scaler.scale();
          const bool found_inf = part[0].get<int>() != 0;
          CHECK(scaler.step(optimizer, {.gradient_norm = found_inf ? HUGE_VAL : 1.0}) == !found_inf);
          scaler.update();
          if (row == run.at("rows").size() || run.at("rows")[row][0].get<std::int64_t>() != step) continue;
          const json& expected = run.at("rows")[row++];
          CHECK(before == expected[2].get<double>());
          CHECK(scaler.scale() == expected[3].get<double>());
          CHECK(scaler.state().growth_tracker == expected[4].get<std::int64_t>());
        }
      }
      CHECK(row == run.at("rows").size());
      CHECK(scaler.skipped_steps() == run.at("skipped_steps").get<std::int64_t>());
      CHECK(scaler.scale() == run.at("final_scale").get<double>());
      CHECK(scaler.state().growth_tracker == run.at("final_growth_tracker").get<std::int64_t>());
    }
  }
}

TEST_CASE("SGD with scaled gradients, some of them inf, follows the reference") {
  const auto fixtures = tests::fixtures_of_kind("amp_training");
  REQUIRE(!fixtures.empty());
  for (const tests::Fixture& fixture : fixtures) {
    INFO(fixture.id());
    const SafetensorsFile file = fixture.tensors();
    const json& hyper = fixture.index.at("hyper");
    REQUIRE(hyper.at("optimizer") == "SGD");
    const std::string prefix = "param.";
    FlatStore store(DType::float32);
    std::vector<std::string> names;
    for (const SafetensorsEntry& entry : file.tensors()) {
      if (entry.name.starts_with(prefix)) names.push_back(entry.name.substr(prefix.size()));
    }
    REQUIRE(!names.empty());
    for (const std::string& name : names) store.add(name, file.at(prefix + name).shape, Initializer::constant(0));
    for (int index = 0; index < store.num_parameters(); ++index) {
      std::ranges::copy(tests::read_floats(file, prefix + store.parameter(index).name), store.values<float>(index).data());
    }
    optim::Sgd<Float32> optimizer(store, {.learning_rate = hyper.at("lr"), .momentum = hyper.at("momentum")});
    amp::GradScaler scaler(scaler_options(hyper));
    const auto scales = tests::read_floats(file, "scale_used");
    const auto found_inf = tests::read_integers(file, "found_inf");
    for (std::size_t step = 0; step < scales.size(); ++step) {
      INFO("step " << step);
      CHECK(scaler.scale() == static_cast<double>(scales[step]));
      StepSummary summary{.kept = 1, .used = std::vector<bool>(names.size(), true)};
      double squares = 0;
      for (int index = 0; index < store.num_parameters(); ++index) {
        const auto all = tests::read_floats(file, "scaled_grads." + store.parameter(index).name);
        const std::span<float> gradient = store.gradient<float>(index).span();
        std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(step * gradient.size()), gradient.size(), gradient.begin());
        for (const float element : gradient) squares += static_cast<double>(element) * static_cast<double>(element);
      }
      summary.gradient_norm = std::sqrt(squares);
      CHECK(scaler.step(optimizer, summary) == (found_inf[step] == 0));
      scaler.update();
      for (int index = 0; index < store.num_parameters(); ++index) {
        const std::string name = "params." + store.parameter(index).name;
        const auto all = tests::read_floats(file, name);
        const std::span<const float> got = store.values<float>(index).span();
        CHECK(tests::mismatch(got, std::span(all).subspan(step * got.size(), got.size()), fixture.tolerance_of(name)) == "");
      }
    }
  }
}
