#pragma once

#include "trireme/core/export.hpp"
#include "trireme/optim/adam.hpp"

namespace trireme TRIREME_EXPORT {
namespace optim {

struct AdamWOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;  // decoupled: applied to the weights, not to the gradient
  bool amsgrad = false;
  bool maximize = false;
  Decay decay = Decay::all;
  std::vector<ParameterGroup> groups = {};
};

// AdamW (Loshchilov, Hutter 2019, arXiv 1711.05101). The update is that of torch.optim.AdamW.
template <typename P, typename D = Cpu>
class AdamW final : public Adam<P, D> {
 public:
  explicit AdamW(Model& model, const AdamWOptions& options = {})
      : Adam<P, D>(model,
                   {.learning_rate = options.learning_rate,
                    .beta1 = options.beta1,
                    .beta2 = options.beta2,
                    .epsilon = options.epsilon,
                    .weight_decay = options.weight_decay,
                    .amsgrad = options.amsgrad,
                    .maximize = options.maximize,
                    .decay = options.decay,
                    .groups = options.groups},
                   true) {}
};

template <TypedModel M>
AdamW(const M&, const AdamWOptions& = {}) -> AdamW<typename M::Precision, typename M::Device>;

}  // namespace optim
}  // namespace trireme
