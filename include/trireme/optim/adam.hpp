#pragma once

#include "trireme/optim/optimizer.hpp"

namespace trireme::optim {

struct AdamOptions {
  double learning_rate = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;  // L2: added to the gradient
  bool amsgrad = false;     // divides by the largest second moment so far (Reddi et al. 2018, arXiv 1904.09237)
  bool maximize = false;    // the objective, by the negated gradient
  Decay decay = Decay::all;
  std::vector<ParameterGroup> groups = {};
};

// Kingma, Ba 2015, arXiv 1412.6980; the update of torch.optim.Adam.
template <typename P, typename D = Cpu>
class Adam : public Optimizer<P, D> {
 public:
  using T = typename P::Master;

  explicit Adam(FlatStore& store, const AdamOptions& options = {}) : Adam(store, options, false) {}

  Settings settings() const override;

 protected:
  Adam(FlatStore& store, const AdamOptions& options, bool decoupled);

 private:
  void update(const typename Optimizer<P, D>::Piece& piece) override;

  AdamOptions options_;
  bool decoupled_;  // weight decay
  Tensor<T, D> first_moment_;
  Tensor<T, D> second_moment_;
  Tensor<T, D> largest_;  // undefined without AMSGrad
};

extern template class Adam<Float32, Cpu>;
extern template class Adam<Float64, Cpu>;
extern template class Adam<MixedBfloat16, Cpu>;
extern template class Adam<MixedFloat16, Cpu>;
extern template class Adam<Float32, Cuda>;
extern template class Adam<Float64, Cuda>;
extern template class Adam<MixedBfloat16, Cuda>;
extern template class Adam<MixedFloat16, Cuda>;

}  // namespace trireme::optim
