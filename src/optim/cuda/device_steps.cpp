#include "trireme/optim/device_steps.hpp"

#include <fmt/format.h>

#include <utility>

#include "trireme/device/graph.hpp"
#include "trireme/ops/update/step.hpp"

namespace trireme::optim {

DeviceSteps::DeviceSteps(FlatStore& store, double learning_rate)
    : store_(store),
      state_(Tensor<ops::StepState, Cuda>::from({1}, std::vector<ops::StepState>(1))),
      updates_(Tensor<std::int64_t, Cuda>::zeros({store.num_parameters()})),
      used_(Tensor<std::int64_t, Cuda>::zeros({store.num_parameters()})),
      used_on_host_(static_cast<std::size_t>(store.num_parameters()), false),
      history_(static_cast<std::size_t>(store.num_parameters()), 0) {
  set_learning_rate(learning_rate);
}

void DeviceSteps::set_learning_rate(double learning_rate) {
  device::require_not_capturing("setting the learning rate");
  device::fill(Cuda{}, &state_.data()->scalars.learning_rate, &learning_rate, sizeof(learning_rate), 1);
}

void DeviceSteps::begin(const StepSummary& summary, double clip_norm, const std::vector<bool>& used) {
  if (used != used_on_host_) {
    if (std::exchange(used_by_graph_, false)) kept_for_graphs_.push_back(used_);
    used_ = Tensor<std::int64_t, Cuda>::from(used_.shape(), std::vector<std::int64_t>(used.begin(), used.end()));
    used_on_host_ = used;
  }
  used_by_graph_ = used_by_graph_ || device::is_capturing();
  ++steps_;
  for (std::size_t parameter = 0; parameter < used.size(); ++parameter) {
    if (used[parameter]) history_[parameter] = history_[parameter] * 0x9E3779B97F4A7C15 + steps_;
  }
  ops::decide_step(summary, clip_norm, state_.data());
  ops::count_updates(state_.data(), used_.data(), used_.numel(), updates_.data());
  store_.buffers().restore_if(&state_.data()->diverged);
}

ops::StepOnDevice DeviceSteps::of(int parameter, bool clipped) const {
  ops::StepState* state = state_.data();
  return {.scalars = clipped ? &state->clipped : &state->scalars, .updates = updates_.data() + parameter};
}

bool DeviceSteps::same_updates(int first, int second) const {
  return history_[static_cast<std::size_t>(first)] == history_[static_cast<std::size_t>(second)];
}

std::int64_t DeviceSteps::take_skipped() {
  std::int64_t skipped = 0;
  device::copy_bytes(Cpu{}, &skipped, Cuda{}, &state_.data()->skipped, sizeof(skipped));
  constexpr std::int64_t none = 0;
  device::fill(Cuda{}, &state_.data()->skipped, &none, sizeof(none), 1);
  return skipped;
}

void DeviceSteps::add_to(State& state, const std::string& prefix) {
  const std::size_t bytes = updates_.span().size_bytes();
  auto* listed = static_cast<std::int64_t*>(store_.device().listed(state, updates_.data(), bytes));
  for (int index = 0; index < store_.num_parameters(); ++index) {
    const ParameterInfo& parameter = store_.parameter(index);
    if (parameter.trainable) state.add(fmt::format("{}step.{}", prefix, parameter.name), listed + index);
  }
  state.after_load([this, listed] {
    for (std::size_t index = 0; index < history_.size(); ++index) history_[index] = static_cast<std::uint64_t>(listed[index]);
  });
}

}  // namespace trireme::optim
