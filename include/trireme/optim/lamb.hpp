#pragma once

#include <limits>

#include "trireme/core/error.hpp"
#include "trireme/core/export.hpp"
#include "trireme/ops/update/lamb.hpp"
#include "trireme/ops/update/optimizer.hpp"
#include "trireme/optim/optimizer.hpp"

namespace trireme TRIREME_EXPORT {
namespace optim {

struct LambOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-6;
  double weight_decay = 0.01;
  bool bias_correction = true;
  double min_norm = 0;  // |w| is clamped to [min_norm, max_norm], the paper's phi
  double max_norm = std::numeric_limits<double>::infinity();
  double max_trust_ratio = std::numeric_limits<double>::infinity();  // bounds clamp(|w|) / |u|
  Decay decay = Decay::all;
  std::vector<ParameterGroup> groups = {};
};

// Scales Adam's direction u of each parameter to the norm of the parameter's weights w: multiplies the learning rate by the
// trust ratio clamp(|w|) / |u|, or by 1 if a norm is 0 (You et al. 2020, arXiv 1904.00962, algorithm 2).
template <typename P, typename D = Cpu>
class Lamb final : public Optimizer<P, D> {
 public:
  using T = typename P::Master;

  explicit Lamb(Model& model, const LambOptions& options = {});

  Settings settings() const override;

 private:
  void measure(const typename Optimizer<P, D>::Piece& piece) override;
  void update(const typename Optimizer<P, D>::Piece& piece) override;
  ops::LambStep step_of(const typename Optimizer<P, D>::Piece& piece) const;

  LambOptions options_;
  int first_moment_;
  int second_moment_;
};

template <TypedModel M>
Lamb(const M&, const LambOptions& = {}) -> Lamb<typename M::Precision, typename M::Device>;

template <typename P, typename D>
Lamb<P, D>::Lamb(Model& model, const LambOptions& options)
    : Optimizer<P, D>(
          model, {options.learning_rate, options.weight_decay, options.decay, options.groups, options.beta1, options.beta2},
          Needs::parameter_norms),
      options_(options),
      first_moment_(this->add_plane("exp_avg")),
      second_moment_(this->add_plane("exp_avg_sq")) {
  require_betas("LAMB", options.beta1, options.beta2);
  require(options.epsilon >= 0, "LAMB's epsilon is 0 or more, got {}", options.epsilon);
  require(options.min_norm >= 0 && options.min_norm <= options.max_norm,
          "LAMB's min_norm is 0 or more and not above max_norm, got {} and {}", options.min_norm, options.max_norm);
  require(options.max_trust_ratio > 0, "LAMB's max_trust_ratio is above 0, got {}", options.max_trust_ratio);
}

template <typename P, typename D>
ops::LambStep Lamb<P, D>::step_of(const typename Optimizer<P, D>::Piece& piece) const {
  return {.learning_rate = piece.learning_rate,
          .beta1 = piece.beta1,
          .beta2 = piece.beta2,
          .epsilon = options_.epsilon,
          .weight_decay = piece.weight_decay,
          .corrects_bias = options_.bias_correction,
          .update = piece.step,
          .gradient_scale = piece.gradient_scale,
          .min_norm = options_.min_norm,
          .max_norm = options_.max_norm,
          .max_trust_ratio = options_.max_trust_ratio,
          .on_device = piece.on_device};
}

template <typename P, typename D>
void Lamb<P, D>::measure(const typename Optimizer<P, D>::Piece& piece) {
  ops::lamb_moments<T>(piece.values, piece.gradients, piece.plane(first_moment_), piece.plane(second_moment_), piece.count,
                       step_of(piece), piece.squares, D{});
}

template <typename P, typename D>
void Lamb<P, D>::update(const typename Optimizer<P, D>::Piece& piece) {
  ops::LambStep step = step_of(piece);
  if (piece.adapts) step.squares = piece.squares;
  ops::update_elements<ops::LambUpdate<T>>(step, piece.count,
                                           {piece.plane(first_moment_), piece.plane(second_moment_), piece.values}, D{});
}

template <typename P, typename D>
Settings Lamb<P, D>::settings() const {
  return this->settings_of("LAMB", {{"beta1", options_.beta1},
                                    {"beta2", options_.beta2},
                                    {"epsilon", options_.epsilon},
                                    {"bias_correction", options_.bias_correction},
                                    {"min_norm", options_.min_norm},
                                    {"max_norm", options_.max_norm},
                                    {"max_trust_ratio", options_.max_trust_ratio}});
}

extern template class Lamb<Float32, Cpu>;
extern template class Lamb<MixedBfloat16, Cpu>;
extern template class Lamb<MixedFloat16, Cpu>;
extern template class Lamb<Float32, Cuda>;
extern template class Lamb<MixedBfloat16, Cuda>;
extern template class Lamb<MixedFloat16, Cuda>;

}  // namespace optim
}  // namespace trireme
