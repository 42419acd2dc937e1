#pragma once

#include "trireme/core/error.hpp"
#include "trireme/core/export.hpp"
#include "trireme/ops/update/adam.hpp"
#include "trireme/ops/update/optimizer.hpp"
#include "trireme/optim/optimizer.hpp"

namespace trireme TRIREME_EXPORT {
namespace optim {

struct AdamOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;  // L2: added to the gradient
  bool amsgrad = false;     // divides by the largest second moment so far (Reddi et al. 2018, arXiv 1904.09237)
  bool maximize = false;    // maximizes the objective: negates the gradient
  Decay decay = Decay::all;
  std::vector<ParameterGroup> groups = {};
};

// Adam (Kingma, Ba 2015, arXiv 1412.6980). The update is that of torch.optim.Adam.
template <typename P, typename D = Cpu>
class Adam : public Optimizer<P, D> {
 public:
  using T = typename P::Master;

  explicit Adam(Model& model, const AdamOptions& options = {}) : Adam(model, options, false) {}

  Settings settings() const override;

 protected:
  Adam(Model& model, const AdamOptions& options, bool decoupled);

 private:
  void update(const typename Optimizer<P, D>::Piece& piece) override;

  AdamOptions options_;
  bool decoupled_;  // weight decay
  int first_moment_;
  int second_moment_;
  int largest_ = Optimizer<P, D>::no_plane;  // exists only with AMSGrad
};

template <TypedModel M>
Adam(const M&, const AdamOptions& = {}) -> Adam<typename M::Precision, typename M::Device>;

template <typename P, typename D>
Adam<P, D>::Adam(Model& model, const AdamOptions& options, bool decoupled)
    : Optimizer<P, D>(
          model, {options.learning_rate, options.weight_decay, options.decay, options.groups, options.beta1, options.beta2}),
      options_(options),
      decoupled_(decoupled),
      first_moment_(this->add_plane("exp_avg")),
      second_moment_(this->add_plane("exp_avg_sq")) {
  require_betas("Adam", options.beta1, options.beta2);
  require(options.epsilon >= 0, "Adam's epsilon is 0 or more, got {}", options.epsilon);
  if (options.amsgrad) largest_ = this->add_plane("max_exp_avg_sq");
}

template <typename P, typename D>
void Adam<P, D>::update(const typename Optimizer<P, D>::Piece& piece) {
  const ops::AdamStep step{.learning_rate = piece.learning_rate,
                           .beta1 = piece.beta1,
                           .beta2 = piece.beta2,
                           .epsilon = options_.epsilon,
                           .weight_decay = piece.weight_decay,
                           .decoupled = decoupled_,
                           .update = piece.step,
                           .gradient_scale = options_.maximize ? -piece.gradient_scale : piece.gradient_scale,
                           .on_device = piece.on_device};
  ops::update_elements<ops::AdamUpdate<T>>(
      step, piece.count,
      {piece.gradients, piece.values, piece.plane(first_moment_), piece.plane(second_moment_), piece.plane(largest_)}, D{});
}

template <typename P, typename D>
Settings Adam<P, D>::settings() const {
  return this->settings_of(decoupled_ ? "AdamW" : "Adam", {{"beta1", options_.beta1},
                                                           {"beta2", options_.beta2},
                                                           {"epsilon", options_.epsilon},
                                                           {"amsgrad", options_.amsgrad},
                                                           {"maximize", options_.maximize}});
}

extern template class Adam<Float32, Cpu>;
extern template class Adam<MixedBfloat16, Cpu>;
extern template class Adam<MixedFloat16, Cpu>;
extern template class Adam<Float32, Cuda>;
extern template class Adam<MixedBfloat16, Cuda>;
extern template class Adam<MixedFloat16, Cuda>;

}  // namespace optim
}  // namespace trireme
