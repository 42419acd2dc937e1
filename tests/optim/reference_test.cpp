// Optimizers, clipping and schedules against PyTorch's results; which fixtures there are is read from the index.

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "catch.hpp"
#include "fixtures.hpp"
#include "trireme/core/error.hpp"
#include "trireme/ops/reduce/reduce.hpp"
#include "trireme/optim/adagrad.hpp"
#include "trireme/optim/adamw.hpp"
#include "trireme/optim/lamb.hpp"
#include "trireme/optim/lars.hpp"
#include "trireme/optim/learning_rate.hpp"
#include "trireme/optim/rmsprop.hpp"
#include "trireme/optim/sgd.hpp"

using namespace trireme;
using nlohmann::json;

namespace {

using Values = std::vector<float>;

// Initial parameters and the gradients of every step, by name.
struct Inputs {
  std::map<std::string, Values> parameters;
  std::map<std::string, Values> gradients;
  std::map<std::string, Shape> shapes;
  std::int64_t steps = 0;

  explicit Inputs(const tests::Fixture& fixture) {
    const SafetensorsFile file = fixture.tensors();
    for (const SafetensorsEntry& entry : file.tensors()) {
      const auto dot = entry.name.find('.');
      const std::string name = entry.name.substr(dot + 1);
      if (entry.name.starts_with("param.")) {
        parameters[name] = tests::read_floats(file, entry.name);
        shapes[name] = entry.shape;
      } else {
        gradients[name] = tests::read_floats(file, entry.name);
        steps = entry.shape[0];
      }
    }
  }

  std::span<const float> gradient(const std::string& name, std::int64_t step) const {
    const auto count = parameters.at(name).size();
    return std::span(gradients.at(name)).subspan(static_cast<std::size_t>(step) * count, count);
  }
};

// How many steps a fixture has: no more than there are gradients for.
std::int64_t steps_of(const SafetensorsFile& expected, const Inputs& in) {
  const std::int64_t steps = expected.tensors().front().shape[0];
  require(steps <= in.steps, "{} steps are expected, there are gradients of {}", steps, in.steps);
  return steps;
}

// Of [steps, ...] one step.
Values of_step(const SafetensorsFile& file, const std::string& name, std::int64_t step) {
  const Values all = tests::read_floats(file, name);
  const std::int64_t count = file.at(name).shape.numel() / file.at(name).shape[0];
  return {all.begin() + step * count, all.begin() + (step + 1) * count};
}

Inputs inputs() { return Inputs(tests::fixtures_of_kind("optimizer_inputs").at(0)); }

template <typename Options>
Options adam_options(const json& hyper) {
  Options options;
  options.learning_rate = hyper.value("lr", 0.0);
  options.beta1 = hyper.at("betas")[0];
  options.beta2 = hyper.at("betas")[1];
  options.epsilon = hyper.at("eps");
  options.weight_decay = hyper.at("weight_decay");
  return options;
}

// The options of an optimizer, beside those that every fixture may have.
void know(json hyper, std::initializer_list<std::string_view> options) {
  for (const char* common : {"optimizer", "clip_max_norm", "schedule"}) hyper.erase(common);
  tests::know_options(hyper, options);
}

// The optimizer that a fixture describes; skips one that the library does not have, or not with these options.
std::unique_ptr<optim::Optimizer<Float32>> optimizer_for(const json& hyper, Model& model) {
  const std::string name = hyper.at("optimizer");
  if (name == "AdamW") {
    know(hyper, {"lr", "betas", "eps", "weight_decay", "amsgrad", "maximize"});
    auto options = adam_options<optim::AdamWOptions>(hyper);
    options.amsgrad = hyper.value("amsgrad", false);
    options.maximize = hyper.value("maximize", false);
    return std::make_unique<optim::AdamW<Float32>>(model, options);
  }
  if (name == "Adam") {
    know(hyper, {"lr", "betas", "eps", "weight_decay", "amsgrad", "maximize"});
    auto options = adam_options<optim::AdamOptions>(hyper);
    options.amsgrad = hyper.value("amsgrad", false);
    options.maximize = hyper.value("maximize", false);
    return std::make_unique<optim::Adam<Float32>>(model, options);
  }
  if (name == "LAMB") {
    know(hyper, {"lr", "betas", "eps", "weight_decay", "bias_correction", "phi", "max_trust_ratio"});
    if (hyper.value("phi", "identity") != "identity") throw tests::SkippedFixture{"LAMB has no other phi than the identity"};
    auto options = adam_options<optim::LambOptions>(hyper);
    options.bias_correction = hyper.at("bias_correction");
    options.max_trust_ratio = hyper.value("max_trust_ratio", options.max_trust_ratio);
    return std::make_unique<optim::Lamb<Float32>>(model, options);
  }
  if (name == "SGD") {
    know(hyper, {"lr", "momentum", "dampening", "weight_decay", "nesterov"});
    return std::make_unique<optim::Sgd<Float32>>(model, optim::SgdOptions{.learning_rate = hyper.at("lr"),
                                                                          .momentum = hyper.at("momentum"),
                                                                          .dampening = hyper.at("dampening"),
                                                                          .weight_decay = hyper.at("weight_decay"),
                                                                          .nesterov = hyper.at("nesterov")});
  }
  if (name == "LARS") {
    know(hyper, {"lr", "momentum", "weight_decay", "trust_coefficient"});
    return std::make_unique<optim::Lars<Float32>>(model, optim::LarsOptions{.learning_rate = hyper.at("lr"),
                                                                            .momentum = hyper.at("momentum"),
                                                                            .weight_decay = hyper.at("weight_decay"),
                                                                            .trust = hyper.at("trust_coefficient")});
  }
  if (name == "RMSprop") {
    know(hyper, {"lr", "alpha", "eps", "momentum", "weight_decay", "centered"});
    return std::make_unique<optim::Rmsprop<Float32>>(model, optim::RmspropOptions{.learning_rate = hyper.at("lr"),
                                                                                  .smoothing = hyper.at("alpha"),
                                                                                  .epsilon = hyper.at("eps"),
                                                                                  .momentum = hyper.at("momentum"),
                                                                                  .weight_decay = hyper.at("weight_decay"),
                                                                                  .centered = hyper.at("centered")});
  }
  if (name == "Adagrad") {
    know(hyper, {"lr", "lr_decay", "eps", "weight_decay", "initial_accumulator_value"});
    return std::make_unique<optim::Adagrad<Float32>>(
        model, optim::AdagradOptions{.learning_rate = hyper.at("lr"),
                                     .learning_rate_decay = hyper.at("lr_decay"),
                                     .epsilon = hyper.at("eps"),
                                     .weight_decay = hyper.at("weight_decay"),
                                     .initial_sum = hyper.at("initial_accumulator_value")});
  }
  throw tests::SkippedFixture{"there is no optimizer " + name};
}

optim::LearningRate schedule_for(const json& hyper) {
  if (!hyper.contains("schedule")) return {};
  const json& rule = hyper.at("schedule");
  const double base = rule.at("base_lr");
  return optim::warmup_cosine({.base = base,
                               .warmup = rule.at("warmup"),
                               .total = rule.at("total"),
                               .minimum = base * rule.at("min_ratio").get<double>()});
}

std::vector<std::string> run(const tests::Fixture& fixture, const Inputs& in) {
  std::vector<std::string> problems;
  const json& hyper = fixture.index.at("hyper");
  Model model(DType::float32);
  FlatStore& store = model.store();
  std::map<std::string, int> indices;
  for (const auto& [name, values] : in.parameters)
    indices[name] = store.add(name, in.shapes.at(name), Initializer::constant(0));
  const auto optimizer = optimizer_for(hyper, model);
  for (const auto& [name, index] : indices) {
    std::copy(in.parameters.at(name).begin(), in.parameters.at(name).end(), store.values<float>(index).data());
  }
  const optim::LearningRate schedule = schedule_for(hyper);
  const SafetensorsFile expected = fixture.tensors();
  for (std::int64_t step = 0; step < steps_of(expected, in); ++step) {
    for (const auto& [name, index] : indices) {
      const auto gradient = in.gradient(name, step);
      std::copy(gradient.begin(), gradient.end(), store.gradient<float>(index).data());
    }
    const auto plane = store.gradients<float>();
    const double norm = std::sqrt(ops::sum_of_squares(plane.data(), static_cast<std::size_t>(plane.numel())));
    if (schedule) optimizer->set_learning_rate(schedule(step));
    optimizer->step({.target_weight = 1, .gradient_norm = norm, .used = std::vector<bool>(indices.size(), true)},
                    {.clip_norm = hyper.value("clip_max_norm", 0.0)});
    for (const auto& [name, index] : indices) {
      const std::string key = "params." + name;
      const std::string worst =
          tests::mismatch(store.values<float>(index).span(), of_step(expected, key, step), fixture.tolerance_of(key));
      if (!worst.empty()) problems.push_back(fmt::format("{} after step {}: {}", name, step, worst));
    }
  }
  return problems;
}

// Plain SGD from zero with rate 1 shows the gradient that clipping leaves.
Values clipped(const Inputs& in, const std::string& name, std::int64_t step, double norm, double max_norm) {
  Model model(DType::float32);
  FlatStore& store = model.store();
  const int index = store.add(name, in.shapes.at(name), Initializer::constant(0));
  optim::Sgd<Float32> optimizer(model, {.learning_rate = 1});
  const auto gradient = in.gradient(name, step);
  std::copy(gradient.begin(), gradient.end(), store.gradient<float>(index).data());
  optimizer.step({.target_weight = 1, .gradient_norm = norm, .used = {true}}, {.clip_norm = max_norm});
  Values result;
  for (const float value : store.values<float>(index).span()) result.push_back(-value);
  return result;
}

std::vector<std::string> run_clipping(const tests::Fixture& fixture, const Inputs& in) {
  std::vector<std::string> problems;
  const SafetensorsFile expected = fixture.tensors();
  for (const SafetensorsEntry& entry : expected.tensors()) {
    if (entry.name.starts_with("total_norm.") && entry.name != "total_norm.l2") {
      tests::list_skipped(fixture.id() + ", " + entry.name, "gradients are clipped by their L2 norm");
    }
  }
  const double max_norm = fixture.index.at("hyper").at("max_norm");
  const auto norms = expected.read_values<double>("total_norm.l2");
  const tests::Tolerance tolerance = fixture.tolerance();
  for (std::int64_t step = 0; step < steps_of(expected, in); ++step) {
    double squares = 0;
    for (const auto& [name, values] : in.parameters) {
      squares += ops::sum_of_squares(in.gradient(name, step).data(), values.size());
    }
    const double norm = std::sqrt(squares);
    const double wanted = norms.at(static_cast<std::size_t>(step));
    if (!(std::abs(norm - wanted) <= tolerance.atol + tolerance.rtol * wanted)) {
      problems.push_back(fmt::format("step {}: a norm of {}, wanted {}", step, norm, wanted));
    }
    for (const auto& [name, values] : in.parameters) {
      const std::string worst =
          tests::mismatch(clipped(in, name, step, norm, max_norm), of_step(expected, "clipped.l2." + name, step), tolerance);
      if (!worst.empty()) problems.push_back(fmt::format("{}, step {}: {}", name, step, worst));
    }
  }
  return problems;
}

}  // namespace

TEST_CASE("optimizers make PyTorch's steps") {
  CHECK(tests::problems_of("optimizer", [](const tests::Fixture& fixture) { return run(fixture, inputs()); }) == "");
}

TEST_CASE("gradient norms and clipping are PyTorch's") {
  CHECK(tests::problems_of("clip", [](const tests::Fixture& fixture) { return run_clipping(fixture, inputs()); }) == "");
}

namespace {

optim::LearningRate schedule_named(const std::string& name, const json& entry) {
  const double base = entry.at("base_lr");
  const json options = entry.value("options", json::object());
  const auto warmup = [&](optim::Warmup rise, double minimum) {
    return optim::WarmupOptions{
        .base = base, .warmup = entry.at("warmup"), .total = entry.at("total"), .minimum = minimum, .rise = rise};
  };
  if (name == "StepLR") return optim::step_decay(base, options.at("step_size"), options.at("gamma"));
  if (name == "MultiStepLR") return optim::multi_step(base, options.at("milestones"), options.at("gamma"));
  if (name == "ExponentialLR") return optim::exponential(base, options.at("gamma"));
  if (name == "CosineAnnealingLR") return optim::cosine(base, options.at("T_max"), options.at("eta_min"));
  if (name == "CosineAnnealingWarmRestarts") {
    return optim::cosine_restarts(base, options.at("T_0"), options.at("T_mult"), options.at("eta_min"));
  }
  if (name == "LinearLR") {
    return optim::linear(base, options.at("start_factor"), options.at("end_factor"), options.at("total_iters"));
  }
  if (name == "PolynomialLR") return optim::polynomial(base, options.at("total_iters"), options.at("power"));
  if (name == "OneCycleLR") {
    if (options.value("anneal_strategy", "cos") != "cos") return {};
    return optim::one_cycle({.maximum = options.at("max_lr"),
                             .total = options.at("total_steps"),
                             .rising_share = options.at("pct_start"),
                             .first_divisor = options.at("div_factor"),
                             .final_divisor = options.at("final_div_factor")});
  }
  if (name == "warmup_cosine_from_zero") {
    return optim::warmup_cosine_waves(base, entry.at("warmup"), entry.at("total"), entry.at("cycles"));
  }
  if (name == "warmup_cosine_min_lr") return optim::warmup_cosine(warmup(optim::Warmup::below_base, entry.at("min_lr")));
  if (name == "warmup_linear") return optim::warmup_linear(warmup(optim::Warmup::from_zero, 0));
  return {};
}

}  // namespace

TEST_CASE("schedules give the reference's learning rates") {
  const auto check = [](const tests::Fixture& fixture) {
    std::vector<std::string> problems;
    const json schedules = tests::read_json(fixture.file);
    const tests::Tolerance tolerance = fixture.tolerance();
    for (const auto& [name, entry] : schedules.items()) {
      const optim::LearningRate schedule = schedule_named(name, entry);
      if (!schedule) {
        tests::list_skipped(fixture.id() + ", " + name, "there is no such schedule");
        continue;
      }
      const auto rates = entry.at("lr").get<std::vector<double>>();
      for (std::size_t step = 0; step < rates.size(); ++step) {
        const double rate = schedule(static_cast<std::int64_t>(step));
        if (std::abs(rate - rates[step]) <= tolerance.atol + tolerance.rtol * std::abs(rates[step])) continue;
        problems.push_back(fmt::format("{}, step {}: {}, wanted {}", name, step, rate, rates[step]));
      }
    }
    return problems;
  };
  CHECK(tests::problems_of("lr_schedules", check) == "");
}
