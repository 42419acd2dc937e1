// The loss scale on a GPU in a build without CUDA, where no tensor lies there.
#include "trireme/amp/device_loss_scale.hpp"
#include "trireme/device/cuda.hpp"

namespace trireme::amp {

DeviceLossScale::DeviceLossScale(const ops::LossScale&) { device::require_cuda(); }
Scalar<double, Cuda> DeviceLossScale::scale() const { return {}; }
StepSummary DeviceLossScale::unscaled(StepSummary summary) { return summary; }
void DeviceLossScale::update(const ops::LossScaleRules&) {}
ops::LossScale DeviceLossScale::read() const { return {}; }
void DeviceLossScale::write(const ops::LossScale&) {}

}  // namespace trireme::amp
