#pragma once

#include <memory>

#include "trireme/core/export.hpp"
#include "trireme/core/step_summary.hpp"
#include "trireme/ops/update/loss_scale.hpp"
#include "trireme/tensor/scalar.hpp"

namespace trireme TRIREME_EXPORT {
namespace amp {

// A loss scale in a GPU's memory, updated by the GPU. The host waits only in read().
class DeviceLossScale {
 public:
  explicit DeviceLossScale(const ops::LossScale& state);

  Scalar<double, Cuda> scale() const;
  StepSummary unscaled(StepSummary summary);  // also counts an overflow if the norm is not finite
  void update(const ops::LossScaleRules& rules);

  ops::LossScale read() const;
  void write(const ops::LossScale& here);

 private:
  ops::LossScale* state() const { return static_cast<ops::LossScale*>(storage_->data()); }

  std::shared_ptr<device::Storage> storage_;
};

}  // namespace amp
}  // namespace trireme
