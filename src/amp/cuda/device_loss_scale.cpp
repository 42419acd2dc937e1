#include "trireme/amp/device_loss_scale.hpp"

#include <cstddef>
#include <memory>

#include "trireme/ops/update/step.hpp"

namespace trireme::amp {

DeviceLossScale::DeviceLossScale(const ops::LossScale& state)
    : storage_(std::make_shared<device::Storage>(device::cuda_memory(), sizeof(state))) {
  write(state);
}

// A view of the scale, which is the first member of the state.
Scalar<double, Cuda> DeviceLossScale::scale() const {
  static_assert(offsetof(ops::LossScale, scale) == 0);
  return Scalar<double, Cuda>(Tensor<double, Cuda>({}, storage_));
}

StepSummary DeviceLossScale::unscaled(StepSummary summary) {
  const auto numbers = std::make_shared<Tensor<StepNumbers, Cuda>>(Shape{1});
  ops::unscale_step(summary.on_device.get(), state(), numbers->data());
  summary.on_device = std::shared_ptr<const StepNumbers>(numbers, numbers->data());
  return summary;
}

void DeviceLossScale::update(const ops::LossScaleRules& rules) { ops::update_loss_scale(rules, state()); }

ops::LossScale DeviceLossScale::read() const {
  ops::LossScale here;
  device::copy_bytes(Cpu{}, &here, Cuda{}, state(), sizeof(here));
  return here;
}

void DeviceLossScale::write(const ops::LossScale& here) { device::copy_bytes(Cuda{}, state(), Cpu{}, &here, sizeof(here)); }

}  // namespace trireme::amp
