#include "trireme/optim/optimizer.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "catch.hpp"
#include "optim/weights.hpp"
#include "trireme/core/error.hpp"
#include "trireme/optim/adamw.hpp"
#include "trireme/optim/lamb.hpp"
#include "trireme/optim/lars.hpp"
#include "trireme/optim/learning_rate.hpp"
#include "trireme/optim/lion.hpp"
#include "trireme/optim/nadam.hpp"
#include "trireme/optim/named.hpp"
#include "trireme/optim/radam.hpp"
#include "trireme/optim/sgd.hpp"

using namespace trireme;
using tests::Weights;

namespace {

// Keeps the arguments of update().
class Recorder final : public optim::Optimizer<Float32> {
 public:
  explicit Recorder(Model& model, optim::Decay decay = optim::Decay::all, std::vector<optim::ParameterGroup> groups = {})
      : Optimizer(model, {.learning_rate = 0.5, .weight_decay = 0.1, .decay = decay, .groups = std::move(groups)}) {}
  optim::Settings settings() const override { return {}; }
  std::vector<Piece> pieces;

 private:
  void update(const Piece& piece) override { pieces.push_back(piece); }
};

}  // namespace

TEST_CASE("an optimizer sees neighbouring parameters as one piece") {
  Weights weights;
  Recorder optimizer(weights.model);
  optimizer.step(weights.summary());
  REQUIRE(optimizer.pieces.size() == 1);
  CHECK(optimizer.pieces[0].range.begin == 0);
  CHECK(optimizer.pieces[0].count == 48 + 32 + 16);  // last with its gap, weight, bias
  CHECK(optimizer.pieces[0].step == 1);
  CHECK(optimizer.pieces[0].gradient_scale == 2);
}

TEST_CASE("decay, use and the number of updates split pieces") {
  Weights weights;
  Recorder optimizer(weights.model, optim::Decay::matrices);
  optimizer.step(weights.summary());
  REQUIRE(optimizer.pieces.size() == 2);
  CHECK(optimizer.pieces[0].weight_decay == 0.1);
  CHECK(optimizer.pieces[1].weight_decay == 0);
  optimizer.pieces.clear();
  optimizer.step(weights.summary({true, false, true}));  // `weight` was not used
  REQUIRE(optimizer.pieces.size() == 2);
  CHECK(optimizer.pieces[0].count == 35);
  CHECK(optimizer.pieces[1].range.begin == 80);
  optimizer.pieces.clear();
  optimizer.step(weights.summary());
  REQUIRE(optimizer.pieces.size() == 3);
  CHECK(optimizer.pieces[0].step == 3);
  CHECK(optimizer.pieces[1].step == 2);
}

TEST_CASE("clipping scales by the norm of the mean gradient") {
  Weights weights;
  Recorder optimizer(weights.model);
  optimizer.step(weights.summary(), {.clip_norm = 1});
  CHECK(optimizer.pieces[0].gradient_scale == Approx(2.0 / (4 + 1e-6)));
  optimizer.pieces.clear();
  optimizer.step(weights.summary(), {.clip_norm = 5});
  CHECK(optimizer.pieces[0].gradient_scale == 2);
  CHECK_THROWS_AS(optimizer.step(weights.summary(), {.clip_norm = -1}), Error);
}

TEST_CASE("optimizers and schedules refuse what makes no sense") {
  Weights weights;
  CHECK_THROWS_AS(optim::AdamW<Float32>(weights.model, {.beta1 = 1}), Error);
  CHECK_THROWS_AS(optim::AdamW<Float32>(weights.model, {.epsilon = -1}), Error);
  CHECK_THROWS_AS(optim::Sgd<Float32>(weights.model, {.nesterov = true}), Error);
  CHECK_THROWS_AS(optim::Sgd<Float32>(weights.model, {.momentum = -0.1}), Error);
  CHECK_THROWS_AS(optim::warmup_cosine({.warmup = 5, .total = 4}), Error);
  CHECK_THROWS_AS(optim::cosine(1, 0, 0), Error);
  CHECK_THROWS_AS(optim::one_cycle({.total = 10, .rising_share = 1.5}), Error);
}

TEST_CASE("a learning rate is finite and 0 or more") {
  Weights weights;
  Recorder optimizer(weights.model);
  for (const double wrong : {std::nan(""), std::numeric_limits<double>::infinity(), -0.1}) {
    CHECK_THROWS_WITH(optimizer.set_learning_rate(wrong), ContainsSubstring("a learning rate is finite and 0 or more"));
    CHECK(optimizer.learning_rate() == 0.5);
    CHECK_THROWS_AS(optim::Sgd<Float32>(weights.model, {.learning_rate = wrong}), Error);
  }
  optimizer.set_learning_rate(0);
  CHECK(optimizer.learning_rate() == 0);
}

TEST_CASE("clipping by value bounds every element of the mean gradient") {
  Weights weights;
  Recorder optimizer(weights.model);
  float* gradients = weights.store.gradients<float>().data();
  gradients[0] = 0.2F;
  gradients[1] = -3;
  gradients[2] = 3;
  gradients[3] = std::nanf("");
  optimizer.step(weights.summary(), {.clip_value = 0.5});
  CHECK(optimizer.pieces[0].gradient_scale == 1);
  CHECK(gradients[0] == 0.4F);
  CHECK(gradients[1] == -0.5F);
  CHECK(gradients[2] == 0.5F);
  CHECK(std::isnan(gradients[3]));
  CHECK_THROWS_AS(optimizer.step(weights.summary(), {.clip_value = -1}), Error);
}

TEST_CASE("a parameter follows the first group that matches its name") {
  Weights weights;
  Recorder optimizer(weights.model, optim::Decay::matrices,
                     {{.pattern = "b*", .learning_rate_factor = 3, .weight_decay = 0.7, .adapts = false},
                      {.pattern = "?????*", .learning_rate_factor = 2}});
  optimizer.step(weights.summary());
  REQUIRE(optimizer.pieces.size() == 3);  // last, weight, bias
  CHECK(optimizer.pieces[0].learning_rate == 0.5);
  CHECK(optimizer.pieces[0].weight_decay == 0.1);
  CHECK(optimizer.pieces[1].learning_rate == 1);
  CHECK(optimizer.pieces[1].weight_decay == 0.1);
  CHECK(optimizer.pieces[1].adapts);
  CHECK(optimizer.pieces[2].learning_rate == 1.5);
  CHECK(optimizer.pieces[2].weight_decay == 0.7);
  CHECK_FALSE(optimizer.pieces[2].adapts);
  CHECK_THROWS_WITH(Recorder(weights.model, optim::Decay::all, {{.pattern = "h.*"}}),
                    "the parameter group \"h.*\" matches none of the model's 3 parameters; the first is called bias");
}

TEST_CASE("a parameter group has betas of its own where the optimizer has betas") {
  const auto step = [](auto&& make) {
    Weights weights;
    make(weights);
    const auto values = weights.store.values<float>().span();
    return std::vector<float>(values.begin(), values.end());
  };
  const auto stepped_by = [&]<typename Kind, typename Options>(Options options, Kind*) {
    return step([&](Weights& weights) {
      Kind optimizer(weights.model, options);
      const auto gradients = weights.store.gradients<float>().span();
      for (int number = 0; number < 3; ++number) {
        for (std::size_t at = 0; at < gradients.size(); ++at) {
          gradients[at] = (number == 0 ? 8.0F : 1.0F) * std::sin(static_cast<float>(at) * (1 + static_cast<float>(number)));
        }
        optimizer.step(weights.summary());
      }
    });
  };
  const auto compare = [&]<typename Kind, typename Options>(Kind* kind, Options options) {
    options.groups = {};
    const auto others = stepped_by(options, kind);
    options.groups = {{.pattern = "b*", .beta1 = 0.5, .beta2 = 0.8}};
    const auto grouped = stepped_by(options, kind);
    options.groups = {};
    options.beta1 = 0.5;
    options.beta2 = 0.8;
    const auto all = stepped_by(options, kind);
    // last [0, 48), weight [48, 80), bias [80, 96)
    CHECK(std::equal(grouped.begin(), grouped.begin() + 80, others.begin()));
    CHECK(std::equal(grouped.begin() + 80, grouped.end(), all.begin() + 80));
    CHECK(grouped != others);
  };
  compare(static_cast<optim::Adam<Float32>*>(nullptr), optim::AdamOptions{});
  compare(static_cast<optim::AdamW<Float32>*>(nullptr), optim::AdamWOptions{});
  compare(static_cast<optim::Lamb<Float32>*>(nullptr), optim::LambOptions{});
  compare(static_cast<optim::Lion<Float32>*>(nullptr), optim::LionOptions{.learning_rate = 0.1});
  compare(static_cast<optim::Nadam<Float32>*>(nullptr), optim::NadamOptions{});
  compare(static_cast<optim::Radam<Float32>*>(nullptr), optim::RadamOptions{.learning_rate = 0.1});
  Weights weights;
  CHECK_THROWS_WITH(optim::Sgd<Float32>(weights.model, {.momentum = 0.9, .groups = {{.pattern = "b*", .beta1 = 0.5}}}),
                    ContainsSubstring("the parameter group \"b*\" has betas of its own, and this optimizer has none"));
  CHECK_THROWS_WITH(optim::Adam<Float32>(weights.model, {.groups = {{.pattern = "b*", .beta2 = 1}}}),
                    ContainsSubstring("the betas of the parameter group \"b*\" lie in [0, 1), got 0 and 1"));
  const optim::Adam<Float32> shown(weights.model,
                                   {.groups = {{.pattern = "b*", .beta2 = 0.9, .schedule = optim::constant(1)}}});
  CHECK(shown.settings().back().value == "learning rate times 1, weight decay as the others, adapts, a schedule, beta2 0.9");
}

TEST_CASE("a parameter group has a schedule of factors") {
  Weights weights;
  const optim::LearningRate schedule = [](std::int64_t step) { return step == 2 ? -1 : step == 1 ? 0.0 : 0.5; };
  Recorder optimizer(weights.model, optim::Decay::all, {{.pattern = "b*", .learning_rate_factor = 3, .schedule = schedule}});
  const std::uint64_t first = weights.store.version(weights.bias);
  const auto changes = [&](int parameter) { return weights.store.version(parameter) - first; };
  optimizer.step(weights.summary());
  REQUIRE(optimizer.pieces.size() == 2);
  CHECK(optimizer.pieces[0].learning_rate == 0.5);
  CHECK(optimizer.pieces[1].learning_rate == 0.5 * 3 * 0.5);
  CHECK(changes(weights.bias) == 1);
  StepSummary summary = weights.summary();
  summary.step = 1;
  optimizer.step(summary);
  CHECK(optimizer.pieces[3].learning_rate == 0);
  CHECK(changes(weights.bias) == 1);
  CHECK(changes(weights.weight) == 2);
  summary.step = 2;
  CHECK_THROWS_WITH(optimizer.step(summary),
                    ContainsSubstring("the schedule of the parameter group \"b*\" gives -1 in step 2"));
}

namespace {

// Values and gradients that are functions of the index.
void fill(Weights& weights) {
  const auto values = weights.store.values<float>().span();
  const auto gradients = weights.store.gradients<float>().span();
  for (const int parameter : weights.store.layout()) {
    const ParameterInfo& info = weights.store.parameter(parameter);
    for (std::int64_t at = info.offset; at < info.offset + info.numel; ++at) {
      values[static_cast<std::size_t>(at)] = std::sin(static_cast<float>(at));
      gradients[static_cast<std::size_t>(at)] = std::cos(3 * static_cast<float>(at));
    }
  }
}

std::vector<float> stepped(optim::Optimizer<Float32>& optimizer, Weights& weights, int steps = 1) {
  for (int step = 0; step < steps; ++step) {
    fill(weights);
    optimizer.step(weights.summary());
  }
  const auto values = weights.store.values<float>(weights.bias).span();
  return {values.begin(), values.end()};
}

}  // namespace

TEST_CASE("Lion follows the paper's formula") {
  Weights weights;
  optim::Lion<Float32> optimizer(weights.model, {.learning_rate = 0.01, .beta1 = 0.8, .beta2 = 0.9, .weight_decay = 0.1});
  std::vector<double> momentum(16, 0.0);
  for (int step = 0; step < 3; ++step) {
    fill(weights);
    const auto values = weights.store.values<float>(weights.bias).span();
    const auto gradients = weights.store.gradient<float>(weights.bias).span();
    // Gradients against the momentum, growing: the signs change at the step that the betas determine.
    if (step == 1) {
      for (std::size_t index = 0; index < gradients.size(); ++index) gradients[index] *= -static_cast<float>(index) / 16;
    }
    std::vector<double> wanted;
    for (std::size_t index = 0; index < momentum.size(); ++index) {
      const double gradient = 2 * static_cast<double>(gradients[index]);
      const double direction = 0.8 * momentum[index] + (1 - 0.8) * gradient;
      const double weight = values[index];
      wanted.push_back(weight - 0.01 * (std::copysign(1.0, direction) + 0.1 * weight));
      momentum[index] = 0.9 * momentum[index] + (1 - 0.9) * gradient;
    }
    optimizer.step(weights.summary());
    for (std::size_t index = 0; index < wanted.size(); ++index) CHECK(values[index] == Approx(wanted[index]).epsilon(1e-6));
  }
}

TEST_CASE("LAMB without adaptation is AdamW's step, with it as long as the clamped norm says") {
  Weights weights;
  const optim::ParameterGroup excluded{.pattern = "bias", .weight_decay = 0, .adapts = false};
  optim::AdamW<Float32> adamw(weights.model, {.learning_rate = 0.01, .epsilon = 1e-6, .groups = {excluded}});
  const auto wanted = stepped(adamw, weights);
  optim::Lamb<Float32> lamb(weights.model, {.learning_rate = 0.01, .groups = {excluded}});
  const auto got = stepped(lamb, weights);
  for (std::size_t index = 0; index < wanted.size(); ++index) CHECK(got[index] == Approx(wanted[index]).margin(1e-6));

  optim::Lamb<Float32> clamped(weights.model, {.learning_rate = 0.01, .max_norm = 0.5});
  stepped(clamped, weights);
  const auto after = weights.store.values<float>(weights.bias);
  double squares = 0;
  Weights before;
  fill(before);
  for (std::size_t index = 0; index < 16; ++index) {
    squares += std::pow(after.span()[index] - before.store.values<float>(before.bias).span()[index], 2);
  }
  CHECK(std::sqrt(squares) == Approx(0.01 * 0.5).epsilon(1e-4));
}

TEST_CASE("LAMB's trust ratio has a bound") {
  Weights weights;
  const auto bounded = [&](double bound) {
    optim::Lamb<Float32> lamb(weights.model, {.learning_rate = 0.01, .weight_decay = 0, .max_trust_ratio = bound});
    return stepped(lamb, weights);
  };
  fill(weights);
  const Tensor<float> start = weights.store.values<float>(weights.bias).clone();
  const auto unbounded = bounded(1e9);
  const auto quarter = bounded(0.25);
  optim::Lamb<Float32> plain(weights.model,
                             {.learning_rate = 0.01, .weight_decay = 0, .groups = {{.pattern = "*", .adapts = false}}});
  const auto of_one = stepped(plain, weights);
  double moved_freely = 0;
  for (std::size_t index = 0; index < quarter.size(); ++index) {
    const float before = start.span()[index];
    CHECK(quarter[index] - before == Approx(0.25 * (of_one[index] - before)).margin(1e-6));
    moved_freely = std::max<double>(moved_freely, std::abs(unbounded[index] - before));
  }
  CHECK(moved_freely > 0.005);
  CHECK_THROWS_WITH(optim::Lamb<Float32>(weights.model, {.max_trust_ratio = 0}),
                    ContainsSubstring("LAMB's max_trust_ratio is above 0, got 0"));
}

TEST_CASE("Adam that maximizes takes the steps of the negated gradient") {
  Weights weights;
  const auto step_by = [&](auto&& optimizer, float sign) {
    fill(weights);
    for (float& element : weights.store.gradients<float>().span()) element *= sign;
    optimizer.step(weights.summary(), {.clip_norm = 1});
    const auto values = weights.store.values<float>().span();
    return std::vector<float>(values.begin(), values.end());
  };
  const auto adamw = [&](bool maximize) {
    return optim::AdamW<Float32>(weights.model, {.learning_rate = 0.01, .weight_decay = 0.1, .maximize = maximize});
  };
  const auto adam = [&](bool maximize) {
    return optim::Adam<Float32>(weights.model, {.weight_decay = 0.1, .amsgrad = true, .maximize = maximize});
  };
  CHECK(step_by(adamw(true), 1) == step_by(adamw(false), -1));
  CHECK(step_by(adamw(true), 1) != step_by(adamw(false), 1));
  CHECK(step_by(adam(true), 1) == step_by(adam(false), -1));
  CHECK(step_by(adam(true), 1) != step_by(adam(false), 1));
}

TEST_CASE("LARS without adaptation is SGD with momentum") {
  Weights weights;
  optim::Sgd<Float32> sgd(weights.model, {.learning_rate = 0.01, .momentum = 0.9, .weight_decay = 0.1});
  const auto wanted = stepped(sgd, weights, 3);
  optim::Lars<Float32> lars(weights.model,
                            {.learning_rate = 0.01, .weight_decay = 0.1, .groups = {{.pattern = "*", .adapts = false}}});
  const auto got = stepped(lars, weights, 3);
  for (std::size_t index = 0; index < wanted.size(); ++index) CHECK(got[index] == Approx(wanted[index]).margin(1e-6));
}

TEST_CASE("optimizers by name") {
  for (const std::string& name : optim::optimizer_names()) {
    Weights weights;
    fill(weights);
    const auto before = weights.store.values<float>(weights.bias).span()[3];
    const auto optimizer = optim::make_optimizer<Float32>(name, weights.model, {.learning_rate = 0.1, .weight_decay = 0.1});
    CHECK(optimizer->learning_rate() == 0.1);
    CHECK(optimizer->settings().front().name == "optimizer");
    CHECK(stepped(*optimizer, weights)[3] != before);
  }
  Weights weights;
  CHECK_THROWS_AS(optim::make_optimizer<Float32>("adamax", weights.model, {}), Error);
}

TEST_CASE("an optimizer made by name has options of its own unless they are given") {
  Weights weights;
  const auto setting = [&](const std::string& name, const std::string& option, const optim::NamedOptions& options) {
    for (const auto& [key, value] : optim::make_optimizer<Float32>(name, weights.model, options)->settings()) {
      if (key == option) return value;
    }
    return std::string("none");
  };
  CHECK(setting("lion", "beta1", {}) == "0.9");
  CHECK(setting("lion", "beta2", {}) == "0.99");
  CHECK(setting("lion", "beta2", {.beta2 = 0.95}) == "0.95");
  CHECK(setting("adamw", "beta2", {}) == "0.999");
  CHECK(setting("sgd", "momentum", {}) == "0");
  CHECK(setting("sgd", "momentum", {.beta1 = 0.9}) == "0.9");
  CHECK(setting("lars", "momentum", {}) == "0.9");
  CHECK(setting("muon", "nesterov", {}) == "on");
  CHECK(setting("muon", "nesterov", {.nesterov = false}) == "off");
  CHECK(setting("sgd", "nesterov", {}) == "off");
  CHECK(setting("rmsprop", "smoothing", {}) == "0.99");
}
