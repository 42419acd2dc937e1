#pragma once

#include "trireme/autograd/model.hpp"
#include "trireme/autograd/owned_planes.hpp"
#include "trireme/core/export.hpp"
#include "trireme/core/step_summary.hpp"
#include "trireme/precision/policy.hpp"

namespace trireme TRIREME_EXPORT {
namespace optim {

struct SharpnessAwareOptions {
  double radius = 0.05;  // L2 norm of the climbing step, over all parameters together
};

// Sharpness-aware minimization (SAM; Foret et al. 2021, arXiv 2010.01412): a step computes its gradients at values that are a
// short way along the gradient of a first pass. The first pass is a step without an update, used only for its gradient. Both
// passes draw the same random numbers.
//
//   optim::SharpnessAware sharpness(net);
//   {
//     parallel::Step step = replicas.begin(number);
//     step.backward(batch, loss);
//     sharpness.climb(step.finish());
//   }
//   parallel::Step step = replicas.begin(number);
//   step.backward(batch, loss);
//   step.finish();
//   sharpness.descend();
//   step.update(optimizer);
//
// Don't save the model between climb() and descend(). Every rank keeps a copy of all trainable values. On a GPU the host waits
// for the norm.
template <typename P, typename D = Cpu>
class SharpnessAware {
 public:
  using T = typename P::Master;

  explicit SharpnessAware(Model& model, const SharpnessAwareOptions& options = {});

  // Adds radius * gradient / |gradient| to the values. Call it after finish() and before the step ends. Returns false if the
  // loss or a gradient is not finite; the values then do not change. Collective.
  bool climb(const StepSummary& summary);

  void descend();  // restores the values from before climb(), with the same bits
  bool has_climbed() const { return has_climbed_; }

 private:
  FlatStore& store_;
  SharpnessAwareOptions options_;
  OwnedPlanes planes_;
  int before_;  // the values before climb()
  bool has_climbed_ = false;
};

template <TypedModel M>
SharpnessAware(const M&, const SharpnessAwareOptions& = {}) -> SharpnessAware<typename M::Precision, typename M::Device>;

extern template class SharpnessAware<Float32, Cpu>;
extern template class SharpnessAware<MixedBfloat16, Cpu>;
extern template class SharpnessAware<MixedFloat16, Cpu>;
extern template class SharpnessAware<Float32, Cuda>;
extern template class SharpnessAware<MixedBfloat16, Cuda>;
extern template class SharpnessAware<MixedFloat16, Cuda>;

}  // namespace optim
}  // namespace trireme
