#pragma once

#include <cstdint>
#include <string>

#include "trireme/autograd/model.hpp"
#include "trireme/autograd/owned_planes.hpp"
#include "trireme/core/export.hpp"
#include "trireme/precision/policy.hpp"

namespace trireme TRIREME_EXPORT {
namespace optim {

struct MovingAverageOptions {
  double decay = 0.999;  // factor on the average in each update
  // Limits the decay of update 2, 3, ... to (1 + update) / (10 + update), so that early weights fade quickly.
  bool warms_up = true;
};

// An exponential moving average of a model's trainable parameters, to be evaluated or saved instead of the parameters. The
// average is a plane over the store. Every rank keeps the whole plane. Until the first update the average equals the values,
// and the first update copies the values.
//
//   optim::ExponentialMovingAverage average(net, {.decay = 0.999});
template <typename P, typename D = Cpu>
class ExponentialMovingAverage {
 public:
  using T = typename P::Master;

  explicit ExponentialMovingAverage(Model& model, const MovingAverageOptions& options = {});

  void update();  // after each optimizer step; an error while swapped in

  // Exchanges the average and the model's values. A second call exchanges them back.
  void swap();
  bool swapped_in() const { return swapped_in_; }

  // Adds the average to a checkpoint's state. Throws while the average is swapped in, both here and when the state is saved or
  // loaded.
  void add_to(State& state, const std::string& prefix = "moving_average.");

  // [trainable elements], in the store's order. The result is the plane itself, not a copy, so only read it.
  Tensor<T, D> average() const;

 private:
  void begin() const;  // before the first update: copies the values

  template <typename Action>
  void visit(const Action& action) const;  // action(values, average, count), over the whole trainable range

  FlatStore& store_;
  MovingAverageOptions options_;
  OwnedPlanes planes_;
  int average_;
  std::int64_t updates_ = 0;
  bool swapped_in_ = false;
};

template <TypedModel M>
ExponentialMovingAverage(const M&, const MovingAverageOptions& = {})
    -> ExponentialMovingAverage<typename M::Precision, typename M::Device>;

extern template class ExponentialMovingAverage<Float32, Cpu>;
extern template class ExponentialMovingAverage<MixedBfloat16, Cpu>;
extern template class ExponentialMovingAverage<MixedFloat16, Cpu>;
extern template class ExponentialMovingAverage<Float32, Cuda>;
extern template class ExponentialMovingAverage<MixedBfloat16, Cuda>;
extern template class ExponentialMovingAverage<MixedFloat16, Cuda>;

}  // namespace optim
}  // namespace trireme
