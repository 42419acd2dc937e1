#pragma once

#include "trireme/core/error.hpp"
#include "trireme/core/export.hpp"
#include "trireme/ops/update/adadelta.hpp"
#include "trireme/ops/update/optimizer.hpp"
#include "trireme/optim/optimizer.hpp"

namespace trireme TRIREME_EXPORT {
namespace optim {

struct AdadeltaOptions {
  double learning_rate = 1;
  double smoothing = 0.9;   // PyTorch's rho
  double epsilon = 1e-6;    // above 0, because it determines the first steps
  double weight_decay = 0;  // L2: added to the gradient
  bool maximize = false;    // maximizes the objective: negates the gradient
  Decay decay = Decay::all;
  std::vector<ParameterGroup> groups = {};
};

// Scales the gradient by the root mean square of earlier steps, divided by the root mean square of the gradients (Zeiler 2012,
// arXiv 1212.5701). The learning rate is a further factor, usually 1. The update is that of torch.optim.Adadelta.
template <typename P, typename D = Cpu>
class Adadelta final : public Optimizer<P, D> {
 public:
  using T = typename P::Master;

  explicit Adadelta(Model& model, const AdadeltaOptions& options = {});

  Settings settings() const override;

 private:
  void update(const typename Optimizer<P, D>::Piece& piece) override;

  AdadeltaOptions options_;
  int square_average_;
  int update_average_;
};

template <TypedModel M>
Adadelta(const M&, const AdadeltaOptions& = {}) -> Adadelta<typename M::Precision, typename M::Device>;

template <typename P, typename D>
Adadelta<P, D>::Adadelta(Model& model, const AdadeltaOptions& options)
    : Optimizer<P, D>(model, {options.learning_rate, options.weight_decay, options.decay, options.groups}),
      options_(options),
      square_average_(this->add_plane("square_avg")),
      update_average_(this->add_plane("acc_delta")) {
  require(options.smoothing >= 0 && options.smoothing < 1, "Adadelta's smoothing lies in [0, 1), got {}", options.smoothing);
  require(options.epsilon > 0, "Adadelta's epsilon is above 0, got {}", options.epsilon);
}

template <typename P, typename D>
void Adadelta<P, D>::update(const typename Optimizer<P, D>::Piece& piece) {
  const ops::AdadeltaStep step{.learning_rate = piece.learning_rate,
                               .smoothing = options_.smoothing,
                               .epsilon = options_.epsilon,
                               .weight_decay = piece.weight_decay,
                               .gradient_scale = options_.maximize ? -piece.gradient_scale : piece.gradient_scale,
                               .on_device = piece.on_device};
  ops::update_elements<ops::AdadeltaUpdate<T>>(
      step, piece.count, {piece.gradients, piece.values, piece.plane(square_average_), piece.plane(update_average_)}, D{});
}

template <typename P, typename D>
Settings Adadelta<P, D>::settings() const {
  return this->settings_of("Adadelta",
                           {{"smoothing", options_.smoothing}, {"epsilon", options_.epsilon}, {"maximize", options_.maximize}});
}

extern template class Adadelta<Float32, Cpu>;
extern template class Adadelta<MixedBfloat16, Cpu>;
extern template class Adadelta<MixedFloat16, Cpu>;
extern template class Adadelta<Float32, Cuda>;
extern template class Adadelta<MixedBfloat16, Cuda>;
extern template class Adadelta<MixedFloat16, Cuda>;

}  // namespace optim
}  // namespace trireme
