// Optimizers, clipping and schedules against PyTorch's results; which fixtures there are is read from the index.

#include <cmath>
#include <map>

#include "catch.hpp"
#include "fixtures.hpp"
#include "trireme/ops/reduce.hpp"
#include "trireme/optim/adagrad.hpp"
#include "trireme/optim/adamw.hpp"
#include "trireme/optim/lamb.hpp"
#include "trireme/optim/lars.hpp"
#include "trireme/optim/rmsprop.hpp"
#include "trireme/optim/schedule.hpp"
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

// The optimizer that a fixture describes; null for one that the library does not have.
std::unique_ptr<optim::Optimizer<Float32>> optimizer_for(const json& hyper, FlatStore& store) {
  const std::string name = hyper.at("optimizer");
  if (name == "AdamW") {
    auto options = adam_options<optim::AdamWOptions>(hyper);
    options.amsgrad = hyper.value("amsgrad", false);
    return std::make_unique<optim::AdamW<Float32>>(store, options);
  }
  if (name == "Adam") {
    auto options = adam_options<optim::AdamOptions>(hyper);
    options.amsgrad = hyper.value("amsgrad", false);
    return std::make_unique<optim::Adam<Float32>>(store, options);
  }
  if (name == "LAMB") {
    auto options = adam_options<optim::LambOptions>(hyper);
    options.bias_correction = hyper.at("bias_correction");
    return std::make_unique<optim::Lamb<Float32>>(store, options);
  }
  if (name == "SGD") {
    return std::make_unique<optim::Sgd<Float32>>(store, optim::SgdOptions{.learning_rate = hyper.at("lr"),
                                                                          .momentum = hyper.at("momentum"),
                                                                          .dampening = hyper.at("dampening"),
                                                                          .weight_decay = hyper.at("weight_decay"),
                                                                          .nesterov = hyper.at("nesterov")});
  }
  if (name == "LARS") {
    return std::make_unique<optim::Lars<Float32>>(store, optim::LarsOptions{.learning_rate = hyper.at("lr"),
                                                                            .momentum = hyper.at("momentum"),
                                                                            .weight_decay = hyper.at("weight_decay"),
                                                                            .trust = hyper.at("trust_coefficient")});
  }
  if (name == "RMSprop") {
    return std::make_unique<optim::Rmsprop<Float32>>(store, optim::RmspropOptions{.learning_rate = hyper.at("lr"),
                                                                                  .smoothing = hyper.at("alpha"),
                                                                                  .epsilon = hyper.at("eps"),
                                                                                  .momentum = hyper.at("momentum"),
                                                                                  .weight_decay = hyper.at("weight_decay"),
                                                                                  .centered = hyper.at("centered")});
  }
  if (name == "Adagrad") {
    return std::make_unique<optim::Adagrad<Float32>>(
        store, optim::AdagradOptions{.learning_rate = hyper.at("lr"),
                                     .learning_rate_decay = hyper.at("lr_decay"),
                                     .epsilon = hyper.at("eps"),
                                     .weight_decay = hyper.at("weight_decay"),
                                     .initial_sum = hyper.at("initial_accumulator_value")});
  }
  return nullptr;
}

optim::Schedule schedule_for(const json& hyper) {
  if (!hyper.contains("schedule")) return {};
  const json& rule = hyper.at("schedule");
  const double base = rule.at("base_lr");
  return optim::warmup_cosine({.base = base,
                               .warmup = rule.at("warmup"),
                               .total = rule.at("total"),
                               .minimum = base * rule.at("min_ratio").get<double>()});
}

void run(const tests::Fixture& fixture, const Inputs& in) {
  const json& hyper = fixture.index.at("hyper");
  FlatStore store(DType::float32);
  std::map<std::string, int> indices;
  for (const auto& [name, values] : in.parameters)
    indices[name] = store.add(name, in.shapes.at(name), Initializer::constant(0));
  const auto optimizer = optimizer_for(hyper, store);
  for (const auto& [name, index] : indices) {
    std::copy(in.parameters.at(name).begin(), in.parameters.at(name).end(), store.values<float>(index).data());
  }
  const optim::Schedule schedule = schedule_for(hyper);
  const SafetensorsFile expected = fixture.tensors();
  for (std::int64_t step = 0; step < in.steps; ++step) {
    for (const auto& [name, index] : indices) {
      const auto gradient = in.gradient(name, step);
      std::copy(gradient.begin(), gradient.end(), store.gradient<float>(index).data());
    }
    const auto plane = store.gradients<float>();
    const double norm = std::sqrt(ops::sum_of_squares(plane.data(), static_cast<std::size_t>(plane.numel())));
    if (schedule) optimizer->set_learning_rate(schedule(step));
    optimizer->step({.kept = 1, .gradient_norm = norm, .used = std::vector<bool>(indices.size(), true)},
                    {.clip_norm = hyper.value("clip_max_norm", 0.0)});
    for (const auto& [name, index] : indices) {
      const std::string key = "params." + name;
      const Values all = tests::read_floats(expected, key);
      const auto count = in.parameters.at(name).size();
      CAPTURE(step, name);
      CHECK(tests::mismatch(store.values<float>(index).span(),
                            std::span(all).subspan(static_cast<std::size_t>(step) * count, count),
                            fixture.tolerance_of(key)) == "");
    }
  }
}

}  // namespace

TEST_CASE("optimizers make PyTorch's steps") {
  tests::refs_folder_or_skip();
  const Inputs in = inputs();
  int compared = 0;
  for (const tests::Fixture& fixture : tests::fixtures_of_kind("optimizer")) {
    FlatStore store(DType::float32);
    store.add("any", {1}, Initializer::constant(0));
    if (!optimizer_for(fixture.index.at("hyper"), store)) FAIL(fixture.id() << ": this optimizer does not exist");
    DYNAMIC_SECTION(fixture.id()) { run(fixture, in); }
    ++compared;
  }
  CHECK(compared > 0);
}

TEST_CASE("gradient norms and clipping are PyTorch's") {
  tests::refs_folder_or_skip();
  const Inputs in = inputs();
  for (const tests::Fixture& fixture : tests::fixtures_of_kind("clip")) {
    const SafetensorsFile expected = fixture.tensors();
    const double max_norm = fixture.index.at("hyper").at("max_norm");
    const auto l2 = expected.read_values<double>("total_norm.l2");
    for (std::int64_t step = 0; step < in.steps; ++step) {
      double squares = 0;
      for (const auto& [name, values] : in.parameters) {
        squares += ops::sum_of_squares(in.gradient(name, step).data(), values.size());
      }
      CAPTURE(step);
      const auto at = static_cast<std::size_t>(step);
      CHECK(std::sqrt(squares) == Approx(l2[at]).epsilon(fixture.tolerance().rtol).margin(fixture.tolerance().atol));
      // Plain SGD from zero with rate 1 shows the clipped gradient.
      for (const auto& [name, values] : in.parameters) {
        FlatStore store(DType::float32);
        const int index = store.add(name, in.shapes.at(name), Initializer::constant(0));
        optim::Sgd<Float32> optimizer(store, {.learning_rate = 1});
        const auto gradient = in.gradient(name, step);
        std::copy(gradient.begin(), gradient.end(), store.gradient<float>(index).data());
        optimizer.step({.kept = 1, .gradient_norm = std::sqrt(squares), .used = {true}}, {.clip_norm = max_norm});
        Values clipped;
        for (const float value : store.values<float>(index).span()) clipped.push_back(-value);
        const Values all = tests::read_floats(expected, "clipped.l2." + name);
        CHECK(tests::mismatch(clipped, std::span(all).subspan(at * values.size(), values.size()), fixture.tolerance()) == "");
      }
    }
  }
}

namespace {

optim::Schedule schedule_named(const std::string& name, const json& entry) {
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
  tests::refs_folder_or_skip();
  for (const tests::Fixture& fixture : tests::fixtures_of_kind("lr_schedules")) {
    const json schedules = tests::read_json(fixture.file);
    for (const auto& [name, entry] : schedules.items()) {
      const optim::Schedule schedule = schedule_named(name, entry);
      if (!schedule) FAIL(name << ": this schedule does not exist");
      const auto rates = entry.at("lr").get<std::vector<double>>();
      for (std::size_t step = 0; step < rates.size(); ++step) {
        CAPTURE(name, step);
        CHECK(std::abs(schedule(static_cast<std::int64_t>(step)) - rates[step]) <=
              fixture.tolerance().atol + fixture.tolerance().rtol * std::abs(rates[step]));
      }
    }
  }
}
