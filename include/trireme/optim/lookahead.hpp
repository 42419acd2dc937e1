#pragma once

#include <cstdint>
#include <string>

#include "trireme/autograd/model.hpp"
#include "trireme/autograd/owned_planes.hpp"
#include "trireme/core/export.hpp"
#include "trireme/optim/any_optimizer.hpp"
#include "trireme/precision/policy.hpp"

namespace trireme TRIREME_EXPORT {
namespace optim {

struct LookaheadOptions {
  std::int64_t interval = 5;  // steps of the optimizer inside
  double share = 0.5;         // part of the distance to the fast weights by which the slow weights move
};

// Keeps slow weights. Every few steps, the slow weights move towards the weights of another optimizer, and the other optimizer
// continues from the slow weights (Zhang et al. 2019, arXiv 1907.08610). Both optimizers must have the same model, and the
// inner optimizer must outlive this one:
//
//   optim::AdamW adamw(net);
//   optim::Lookahead optimizer(net, adamw, {.interval = 5});
//   run.add(net, optimizer);
//
// The slow weights are a plane over the store. Every rank keeps the whole plane. The slow weights start as the values before
// the first step. Skipped steps do not count, except steps that a GPU skips without telling the host. Lookahead can't be used
// in a StepGraph.
template <typename P, typename D = Cpu>
class Lookahead final : public AnyOptimizer {
 public:
  using T = typename P::Master;

  Lookahead(Model& model, AnyOptimizer& inside, const LookaheadOptions& options = {});

  double learning_rate() const override { return inside_.learning_rate(); }
  void set_learning_rate(double learning_rate) override { inside_.set_learning_rate(learning_rate); }
  bool step(const StepSummary& summary, const UpdateOptions& options = {}) override;
  void check(const StepSummary& summary) const override;
  StepSummary decidable(StepSummary summary) const override { return inside_.decidable(std::move(summary)); }
  void skip_step() override { inside_.skip_step(); }
  std::int64_t skipped_steps() override { return inside_.skipped_steps(); }
  Settings settings() const override;
  void add_to(State& state, const std::string& prefix = "optimizer.") override;

 private:
  template <typename Action>
  void visit(const Action& action) const;  // action(values, slow, count), over the whole trainable range

  FlatStore& store_;
  AnyOptimizer& inside_;
  LookaheadOptions options_;
  OwnedPlanes planes_;
  int slow_;
  std::int64_t steps_ = -1;  // since the slow weights moved; below 0: the slow weights have no values yet
};

template <TypedModel M>
Lookahead(const M&, AnyOptimizer&, const LookaheadOptions& = {}) -> Lookahead<typename M::Precision, typename M::Device>;

extern template class Lookahead<Float32, Cpu>;
extern template class Lookahead<MixedBfloat16, Cpu>;
extern template class Lookahead<MixedFloat16, Cpu>;
extern template class Lookahead<Float32, Cuda>;
extern template class Lookahead<MixedBfloat16, Cuda>;
extern template class Lookahead<MixedFloat16, Cuda>;

}  // namespace optim
}  // namespace trireme
