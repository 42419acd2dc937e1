#include <fmt/format.h>

#include <algorithm>
#include <cmath>

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

// One run of grad_scaler.json; rows are [step, found_inf, scale before, scale after, growth tracker after].
std::vector<std::string> follow_scale(const json& run) {
  std::vector<std::string> problems;
  const auto expect = [&](const char* what, double got, double wanted, std::int64_t step) {
    if (got == wanted) return;
    problems.push_back(
        fmt::format("{}, step {}: {} {}, wanted {}", run.at("name").get<std::string>(), step, what, got, wanted));
  };
  amp::GradScaler scaler(scaler_options(run.at("options")));
  NoOptimizer optimizer;
  std::size_t row = 0;
  std::int64_t step = 0;
  for (const json& part : run.at("script_run_length")) {
    for (int repeat = 0; repeat < part[1].get<int>(); ++repeat, ++step) {
      const double before = scaler.scale();
      const bool found_inf = part[0].get<int>() != 0;
      const bool stepped = scaler.step(optimizer, {.gradient_norm = found_inf ? HUGE_VAL : 1.0});
      expect("optimizer steps", stepped ? 1 : 0, found_inf ? 0 : 1, step);
      scaler.update();
      if (row == run.at("rows").size() || run.at("rows")[row][0].get<std::int64_t>() != step) continue;
      const json& expected = run.at("rows")[row++];
      expect("scale before", before, expected[2], step);
      expect("scale after", scaler.scale(), expected[3], step);
      expect("growth tracker", static_cast<double>(scaler.state().growth_tracker), expected[4], step);
    }
  }
  expect("rows", static_cast<double>(row), static_cast<double>(run.at("rows").size()), step);
  expect("skipped steps", static_cast<double>(scaler.skipped_steps()), run.at("skipped_steps"), step);
  expect("final scale", scaler.scale(), run.at("final_scale"), step);
  expect("final growth tracker", static_cast<double>(scaler.state().growth_tracker), run.at("final_growth_tracker"), step);
  return problems;
}

std::vector<std::string> train_scaled(const tests::Fixture& fixture) {
  const SafetensorsFile file = fixture.tensors();
  const json& hyper = fixture.index.at("hyper");
  const std::string optimizer_name = hyper.at("optimizer");
  if (optimizer_name != "SGD") throw tests::SkippedFixture{"scaled runs are made with SGD, not with " + optimizer_name};
  tests::know_options(hyper,
                      {"optimizer", "lr", "momentum", "init_scale", "growth_factor", "backoff_factor", "growth_interval"});
  std::vector<std::string> problems;
  const std::string prefix = "param.";
  Model model(DType::float32);
  FlatStore& store = model.store();
  for (const SafetensorsEntry& entry : file.tensors()) {
    if (entry.name.starts_with(prefix)) store.add(entry.name.substr(prefix.size()), entry.shape, Initializer::constant(0));
  }
  for (int index = 0; index < store.num_parameters(); ++index) {
    std::ranges::copy(tests::read_floats(file, prefix + store.parameter(index).name), store.values<float>(index).data());
  }
  optim::Sgd<Float32> optimizer(model, {.learning_rate = hyper.at("lr"), .momentum = hyper.at("momentum")});
  amp::GradScaler scaler(scaler_options(hyper));
  const auto scales = tests::read_floats(file, "scale_used");
  const auto found_inf = tests::read_integers(file, "found_inf");
  for (std::size_t step = 0; step < scales.size(); ++step) {
    if (scaler.scale() != static_cast<double>(scales[step])) {
      problems.push_back(fmt::format("step {}: a scale of {}, wanted {}", step, scaler.scale(), scales[step]));
    }
    StepSummary summary{.target_weight = 1, .used = std::vector<bool>(static_cast<std::size_t>(store.num_parameters()), true)};
    double squares = 0;
    for (int index = 0; index < store.num_parameters(); ++index) {
      const auto all = tests::read_floats(file, "scaled_grads." + store.parameter(index).name);
      const std::span<float> gradient = store.gradient<float>(index).span();
      std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(step * gradient.size()), gradient.size(), gradient.begin());
      for (const float element : gradient) squares += static_cast<double>(element) * static_cast<double>(element);
    }
    summary.gradient_norm = std::sqrt(squares);
    const bool stepped = scaler.step(optimizer, summary);
    if (stepped != (found_inf[step] == 0))
      problems.push_back(fmt::format("step {} was {}", step, stepped ? "made" : "skipped"));
    scaler.update();
    for (int index = 0; index < store.num_parameters(); ++index) {
      const std::string name = "params." + store.parameter(index).name;
      const auto all = tests::read_floats(file, name);
      const std::span<const float> got = store.values<float>(index).span();
      const std::string worst =
          tests::mismatch(got, std::span(all).subspan(step * got.size(), got.size()), fixture.tolerance_of(name));
      if (!worst.empty()) problems.push_back(fmt::format("{} after step {}: {}", name, step, worst));
    }
  }
  return problems;
}

}  // namespace

TEST_CASE("the loss scale follows the reference") {
  const auto check = [](const tests::Fixture& fixture) {
    std::vector<std::string> problems;
    for (const json& run : tests::read_json(fixture.file)) {
      for (std::string& text : follow_scale(run)) problems.push_back(std::move(text));
    }
    return problems;
  };
  CHECK(tests::problems_of("grad_scaler", check) == "");
}

TEST_CASE("SGD with scaled gradients, some of them inf, follows the reference") {
  CHECK(tests::problems_of("amp_training", train_scaled) == "");
}
