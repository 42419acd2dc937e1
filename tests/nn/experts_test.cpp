#include "trireme/nn/experts/experts.hpp"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "gradient_check.hpp"
#include "trireme/core/bfloat16.hpp"

using namespace trireme;
using namespace trireme::tests;

namespace {

constexpr std::int64_t sequences = 2, length = 5, width = 4;

template <typename P>
struct Net : nn::Module<P> {
  explicit Net(const nn::MixtureOfExpertsOptions& options) : mlp(*this, "mlp", options) { this->initialize({.seed = 3}); }
  nn::MixtureOfExperts<P> mlp;
};

nn::MixtureOfExpertsOptions small() { return {.width = width, .count = 3, .top_k = 2, .hidden = 6}; }

// The probabilities of a token, by plain loops.
std::vector<double> probabilities_of(const Net<Float64>& net, const double* x) {
  const std::int64_t count = net.mlp.options().count;
  std::vector<double> all(static_cast<std::size_t>(count));
  double total = 0;
  for (std::int64_t expert = 0; expert < count; ++expert) {
    double logit = 0;
    for (std::int64_t i = 0; i < width; ++i) logit += net.mlp.gate.weight.value().at(expert, i) * x[i];
    total += all[static_cast<std::size_t>(expert)] = std::exp(logit);
  }
  for (double& each : all) each /= total;
  return all;
}

std::vector<double> expert_of(const Net<Float64>& net, std::int64_t expert, const double* x) {
  const std::int64_t hidden = net.mlp.options().hidden;
  std::vector<double> y(width);
  for (std::int64_t feature = 0; feature < hidden; ++feature) {
    double gate = 0, up = 0;
    for (std::int64_t i = 0; i < width; ++i) {
      gate += net.mlp.experts.gate_proj.value().at(expert * hidden + feature, i) * x[i];
      up += net.mlp.experts.up_proj.value().at(expert * hidden + feature, i) * x[i];
    }
    for (std::int64_t i = 0; i < width; ++i) {
      y[static_cast<std::size_t>(i)] +=
          net.mlp.experts.down_proj.value().at(expert * width + i, feature) * up * gate / (1 + std::exp(-gate));
    }
  }
  return y;
}

double added(const Tape& tape) {
  double total = 0;
  for (const auto& loss : tape.added_losses()) total += loss->value();
  return total;
}

}  // namespace

TEST_CASE("a mixture of experts is the weighted sum of those that a token chose") {
  for (const bool renormalise : {true, false}) {
    auto options = small();
    options.renormalise = renormalise;
    const Net<Float64> net(options);
    const auto x = random({sequences, length, width}, 5);
    const auto y = net.mlp.forward(x, length).value();
    for (std::int64_t token = 0; token < sequences * length; ++token) {
      const double* const row = x.data() + token * width;
      const auto probabilities = probabilities_of(net, row);
      const auto least = std::ranges::min_element(probabilities) - probabilities.begin();
      const double total = renormalise ? 1 - probabilities[static_cast<std::size_t>(least)] : 1;
      std::vector<double> wanted(width);
      for (std::int64_t expert = 0; expert < 3; ++expert) {
        if (expert == least) continue;
        const auto of_expert = expert_of(net, expert, row);
        for (std::size_t i = 0; i < wanted.size(); ++i) {
          wanted[i] += probabilities[static_cast<std::size_t>(expert)] / total * of_expert[i];
        }
      }
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        CHECK(std::abs(y.data()[static_cast<std::size_t>(token * width) + i] - wanted[i]) < 1e-12);
      }
    }
  }
}

TEST_CASE("gradients of a mixture of experts, with capacity and experts that all tokens share") {
  auto options = small();
  const auto x = random({sequences, length, width}, 5);
  const auto check = [&] {
    const Net<Float64> net(options);
    expect_passed(testing::check_parameter_gradients(net.store(), [&] { return net.mlp.forward(x, length); }));
    expect_passed(testing::check_gradients([&](const Inputs& in) { return net.mlp.forward(in[0], length); }, {x}));
  };
  check();
  options.renormalise = false;
  check();
  options.capacity_factor = 0.7;
  check();
  options.shared_hidden = 3;
  check();
  options.shared_gate = true;
  check();
}

TEST_CASE("added losses flow into the router, and are those of their definitions") {
  auto options = small();
  options.auxiliary_loss = 0.5;
  options.z_loss = 0.25;
  const Net<Float64> net(options);
  const auto x = random({sequences, length, width}, 5);
  Tensor<std::int32_t> targets = Tensor<std::int32_t>::zeros({sequences, length});
  targets.at(1, 0) = targets.at(1, 3) = ops::ignored_target;
  const auto added_loss = [&] {
    const Tape tape;
    net.mlp.forward(x, length, targets);
    return added(tape);
  };
  double wanted = 0;
  for (std::int64_t sequence = 0; sequence < sequences; ++sequence) {
    std::vector<double> share(3), mean(3);
    double squares = 0;
    for (std::int64_t token = 0; token < length; ++token) {
      const double* const row = x.data() + (sequence * length + token) * width;
      const auto probabilities = probabilities_of(net, row);
      const auto least = std::ranges::min_element(probabilities) - probabilities.begin();
      double logit = 0;
      for (std::int64_t i = 0; i < width; ++i) logit += net.mlp.gate.weight.value().at(0, i) * row[i];
      squares += std::pow(logit - std::log(probabilities[0]), 2) / length;
      for (std::size_t expert = 0; expert < 3; ++expert) {
        if (static_cast<std::ptrdiff_t>(expert) != least) share[expert] += 1.0 / length;
        mean[expert] += probabilities[expert] / length;
      }
    }
    const double counted = sequence == 0 ? length : length - 2;
    wanted += counted * (0.5 * 3 * (share[0] * mean[0] + share[1] * mean[1] + share[2] * mean[2]) + 0.25 * squares);
  }
  CHECK(std::abs(added_loss() - wanted) < 1e-12);

  std::vector<double> gradients;
  {
    const Tape tape;
    scale(sum(net.mlp.forward(x, length, targets)), 0).backward();
    gradients = elements(net.mlp.gate.weight.gradient());
  }
  for (std::int64_t i = 0; i < net.mlp.gate.weight.value().numel(); ++i) {
    double& weight = net.mlp.gate.weight.value().data()[i];
    const double before = weight, step = 1e-6;
    weight = before + step;
    const double above = added_loss();
    weight = before - step;
    const double below = added_loss();
    weight = before;
    const double difference = (above - below) / (2 * step);
    CHECK(std::abs(gradients[static_cast<std::size_t>(i)] - difference) < 1e-7);
    CHECK(std::abs(difference) > 1e-4);
  }
}

TEST_CASE("the router of a mixture in bfloat16 computes in float") {
  auto options = small();
  options.count = 2;
  options.top_k = 1;
  const Net<MixedBfloat16> net(options);
  for (std::int64_t i = 0; i < width; ++i) {
    net.mlp.gate.weight.value().at(0, i) = 1;
    net.mlp.gate.weight.value().at(1, i) = 1 + 1.0F / 512;  // which bfloat16 does not tell from 1
  }
  for (const auto& parameter : {net.mlp.experts.gate_proj, net.mlp.experts.up_proj, net.mlp.experts.down_proj}) {
    const auto values = parameter.value();
    for (std::int64_t i = 0; i < values.numel(); ++i) values.data()[i] = i < values.numel() / 2 ? 0.F : 1.F;
  }
  net.store().refresh_compute_copy();
  const auto y = net.mlp.forward(Tensor<bfloat16>::full({1, 1, width}, bfloat16(1.F)), 1).value();
  CHECK(static_cast<float>(y.at(0, 0, 0)) > 1);  // of the second expert
}

TEST_CASE("a mixture of experts refuses sizes that can't be") {
  const auto refused = [](const auto& change, const std::string& text) {
    auto options = small();
    change(options);
    CHECK_THROWS_WITH(Net<Float32>(options), ContainsSubstring(text));
  };
  refused([](auto& o) { o.count = 0; }, "mlp: a mixture of experts needs width, hidden and count above 0, got 4, 6 and 0");
  refused([](auto& o) { o.top_k = 4; }, "mlp: top_k is 4 of 3 experts");
  refused([](auto& o) { o.z_loss = -1; }, "are not below 0");
  const Net<Float32> net(small());
  CHECK_THROWS_WITH(net.mlp.forward(random<float>({1, 4, width}, 1), 3), ContainsSubstring("are not whole sequences of 3"));
}
