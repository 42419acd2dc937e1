#pragma once

#include "trireme/core/error.hpp"
#include "trireme/core/export.hpp"
#include "trireme/ops/update/adagrad.hpp"
#include "trireme/ops/update/optimizer.hpp"
#include "trireme/optim/optimizer.hpp"

namespace trireme TRIREME_EXPORT {
namespace optim {

struct AdagradOptions {
  double learning_rate = 1e-2;
  double learning_rate_decay = 0;  // the rate of step 1, 2, ... is divided by 1 + (step - 1) * learning_rate_decay
  double epsilon = 1e-10;
  double weight_decay = 0;  // L2: added to the gradient
  double initial_sum = 0;   // initial sum of squared gradients
  Decay decay = Decay::all;
  std::vector<ParameterGroup> groups = {};
};

// Divides the step by the root of the sum of all squared gradients (Duchi, Hazan, Singer 2011, JMLR 12). The update is that of
// torch.optim.Adagrad.
template <typename P, typename D = Cpu>
class Adagrad final : public Optimizer<P, D> {
 public:
  using T = typename P::Master;

  explicit Adagrad(Model& model, const AdagradOptions& options = {});

  Settings settings() const override;

 private:
  void update(const typename Optimizer<P, D>::Piece& piece) override;

  AdagradOptions options_;
  int sum_of_squares_;
};

template <TypedModel M>
Adagrad(const M&, const AdagradOptions& = {}) -> Adagrad<typename M::Precision, typename M::Device>;

template <typename P, typename D>
Adagrad<P, D>::Adagrad(Model& model, const AdagradOptions& options)
    : Optimizer<P, D>(model, {options.learning_rate, options.weight_decay, options.decay, options.groups}),
      options_(options),
      sum_of_squares_(this->add_plane("sum", options.initial_sum)) {
  require(options.learning_rate_decay >= 0 && options.epsilon >= 0 && options.initial_sum >= 0,
          "Adagrad's learning_rate_decay, epsilon and initial_sum are 0 or more, got {}, {} and {}",
          options.learning_rate_decay, options.epsilon, options.initial_sum);
}

template <typename P, typename D>
void Adagrad<P, D>::update(const typename Optimizer<P, D>::Piece& piece) {
  const ops::AdagradStep step{.learning_rate = piece.learning_rate,
                              .learning_rate_decay = options_.learning_rate_decay,
                              .epsilon = options_.epsilon,
                              .weight_decay = piece.weight_decay,
                              .update = piece.step,
                              .gradient_scale = piece.gradient_scale,
                              .on_device = piece.on_device};
  ops::update_elements<ops::AdagradUpdate<T>>(step, piece.count, {piece.gradients, piece.values, piece.plane(sum_of_squares_)},
                                              D{});
}

template <typename P, typename D>
Settings Adagrad<P, D>::settings() const {
  return this->settings_of("Adagrad", {{"learning_rate_decay", options_.learning_rate_decay},
                                       {"epsilon", options_.epsilon},
                                       {"initial_sum", options_.initial_sum}});
}

extern template class Adagrad<Float32, Cpu>;
extern template class Adagrad<MixedBfloat16, Cpu>;
extern template class Adagrad<MixedFloat16, Cpu>;
extern template class Adagrad<Float32, Cuda>;
extern template class Adagrad<MixedBfloat16, Cuda>;
extern template class Adagrad<MixedFloat16, Cuda>;

}  // namespace optim
}  // namespace trireme
