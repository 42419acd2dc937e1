#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>

#include "trireme/autograd/record.hpp"
#include "trireme/device/stream.hpp"
#include "trireme/models/layer_costs.hpp"

namespace trireme::models {
namespace detail {

using Clock = std::chrono::steady_clock;

inline constexpr int passes = 5;  // the first of which warms up

// Seconds of one pass, by stage.
template <typename P, typename D>
std::array<double, 3> timed_pass(const Gpt<P, D>& model, const Tensor<std::int32_t, D>& tokens) {
  using M = typename P::Master;
  std::array<double, 3> seconds{};
  Tensor<M, D> between;  // the output of a stage, the input of the next one
  for (int stage = 0; stage < 3; ++stage) {
    Tape tape(TapeOptions{});
    const Variable<M, D> x = stage == 0 ? Variable<M, D>() : watch(between, [](const Tensor<M, D>&) {});
    const auto start = Clock::now();
    if (stage < 2) {
      const Variable<M, D> y = model.stage(stage, x, tokens);
      between = y.value();
      y.gradient().give(Tensor<M, D>::full(y.shape(), M(0.01F)));
      tape.run_backward();
    } else {
      model.last_stage(x, tokens).backward();
    }
    if constexpr (!Tensor<M, D>::on_host) device::current_stream().wait();
    seconds[static_cast<std::size_t>(stage)] = std::chrono::duration<double>(Clock::now() - start).count();
  }
  model.store().clear_gradients();
  return seconds;
}

}  // namespace detail

template <typename P, typename D>
std::vector<double> measured_layer_costs(const GptOptions& options, std::int64_t batch) {
  GptOptions one_block = options;
  one_block.layers = 1;
  Gpt<P, D> model(one_block, {.chunks = 3, .layer_costs = {1, 1, 1}});
  model.initialize();
  Tensor<std::int32_t> tokens({batch, options.block});
  for (std::int64_t i = 0; i < tokens.numel(); ++i) tokens.data()[i] = static_cast<std::int32_t>(i % options.vocabulary);
  const Tensor<std::int32_t, D> there = tokens.to<D>();

  std::array<double, 3> least{};
  least.fill(std::numeric_limits<double>::infinity());
  for (int pass = 0; pass < detail::passes; ++pass) {
    const std::array<double, 3> seconds = detail::timed_pass(model, there);
    if (pass > 0) std::ranges::transform(least, seconds, least.begin(), [](double a, double b) { return std::min(a, b); });
  }
  std::vector<double> costs(static_cast<std::size_t>(options.layers) + 2, least[1]);
  costs.front() = least[0];
  costs.back() = least[2];
  return costs;
}

}  // namespace trireme::models
