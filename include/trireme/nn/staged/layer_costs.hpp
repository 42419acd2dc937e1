#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

#include "trireme/autograd/planes/plane_device.hpp"
#include "trireme/core/export.hpp"
#include "trireme/nn/staged/staged.hpp"

namespace trireme TRIREME_EXPORT {
namespace nn {

namespace detail {

double seconds_of(const std::function<void()>& work, bool on_host);

// The seconds that the forward and backward passes of each layer of an nn::Staged take, measured in one pass.
template <typename Net>
std::vector<double> timed_pass(const Net& model, const typename Net::BatchType& batch) {
  using Flow = typename Net::FlowType;
  using D = typename Net::Device;
  std::vector<double> seconds;
  model.store().begin_step();  // keeps buffers, such as the statistics of batch norm
  PackedFlow between;          // the output of a layer, the input of the next layer
  const auto count = static_cast<std::int64_t>(model.num_layers());
  for (std::int64_t layer = 0; layer < count; ++layer) {
    Tape tape(TapeOptions{});
    std::vector<FlowPart> gradients;
    const Flow x = layer == 0 ? Flow{} : unpack<Flow>(between, &gradients);
    const auto work = [&] {
      if (layer + 1 == count) return loss_from(model, model.last_layer(x, batch), batch).backward();
      GiveGradients give;
      between = pack(settled(model.run_layers({layer, layer + 1}, x, batch)), &give);
      auto next = give.begin();
      for (const FlowPart& part : between.parts) {
        if (!part.with_gradient) continue;
        const FlowPart zeros = allocate_like(part, device::memory_of<D>());
        plane_device<D>().zero(zeros.data(), zeros.bytes());
        (*next++)(zeros);
      }
      tape.run_backward();
    };
    seconds.push_back(seconds_of(work, Tensor<float, D>::on_host));
  }
  model.store().buffers().restore();
  model.store().clear_gradients();
  return seconds;
}

}  // namespace detail

// The seconds that the forward and backward passes of each layer of an nn::Staged take, with the loss, for
// ModelContext::layer_costs. All stages must lie on this rank. Each number is the minimum of several passes.
template <typename Net>
std::vector<double> measured_layer_costs(const Net& model, const typename Net::BatchType& batch) {
  require(model.context().pipeline == nullptr, "costs of layers can be measured only if all layers lie on one rank");
  constexpr int passes = 5;  // the first pass warms up
  std::vector<double> least(model.num_layers(), std::numeric_limits<double>::infinity());
  for (int pass = 0; pass < passes; ++pass) {
    const std::vector<double> seconds = detail::timed_pass(model, batch);
    if (pass > 0) std::ranges::transform(least, seconds, least.begin(), [](double a, double b) { return std::min(a, b); });
  }
  return least;
}

}  // namespace nn
}  // namespace trireme
