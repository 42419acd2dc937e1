#pragma once

#include "trireme/core/error.hpp"
#include "trireme/core/export.hpp"
#include "trireme/ops/update/lars.hpp"
#include "trireme/ops/update/optimizer.hpp"
#include "trireme/optim/optimizer.hpp"

namespace trireme TRIREME_EXPORT {
namespace optim {

struct LarsOptions {
  double learning_rate = 0.1;
  double momentum = 0.9;
  double weight_decay = 0;
  double trust = 0.001;  // the paper's trust coefficient
  Decay decay = Decay::all;
  std::vector<ParameterGroup> groups = {};
};

// SGD with momentum. Multiplies the learning rate of each parameter by trust * |w| / (|g| + weight_decay * |w|), or by 1 if a
// norm is 0 (You, Gitman, Ginsburg 2017, arXiv 1708.03888).
template <typename P, typename D = Cpu>
class Lars final : public Optimizer<P, D> {
 public:
  using T = typename P::Master;

  explicit Lars(Model& model, const LarsOptions& options = {});

  Settings settings() const override;

 private:
  void measure(const typename Optimizer<P, D>::Piece& piece) override;
  void update(const typename Optimizer<P, D>::Piece& piece) override;

  LarsOptions options_;
  int momentum_;
};

template <TypedModel M>
Lars(const M&, const LarsOptions& = {}) -> Lars<typename M::Precision, typename M::Device>;

template <typename P, typename D>
Lars<P, D>::Lars(Model& model, const LarsOptions& options)
    : Optimizer<P, D>(model, {options.learning_rate, options.weight_decay, options.decay, options.groups},
                      Needs::parameter_norms),
      options_(options),
      momentum_(this->add_plane("momentum_buffer")) {
  require(options.momentum >= 0 && options.trust > 0, "LARS' momentum is 0 or more and its trust above 0, got {} and {}",
          options.momentum, options.trust);
}

template <typename P, typename D>
void Lars<P, D>::measure(const typename Optimizer<P, D>::Piece& piece) {
  if (piece.adapts) ops::lars_squares<T>(piece.values, piece.gradients, piece.count, piece.squares, D{});
}

template <typename P, typename D>
void Lars<P, D>::update(const typename Optimizer<P, D>::Piece& piece) {
  const ops::LarsStep step{.learning_rate = piece.learning_rate,
                           .momentum = options_.momentum,
                           .weight_decay = piece.weight_decay,
                           .gradient_scale = piece.gradient_scale,
                           .trust = options_.trust,
                           .squares = piece.adapts ? piece.squares : nullptr,
                           .on_device = piece.on_device};
  ops::update_elements<ops::LarsUpdate<T>>(step, piece.count, {piece.gradients, piece.values, piece.plane(momentum_)}, D{});
}

template <typename P, typename D>
Settings Lars<P, D>::settings() const {
  return this->settings_of("LARS", {{"momentum", options_.momentum}, {"trust", options_.trust}});
}

extern template class Lars<Float32, Cpu>;
extern template class Lars<MixedBfloat16, Cpu>;
extern template class Lars<MixedFloat16, Cpu>;
extern template class Lars<Float32, Cuda>;
extern template class Lars<MixedBfloat16, Cuda>;
extern template class Lars<MixedFloat16, Cuda>;

}  // namespace optim
}  // namespace trireme
