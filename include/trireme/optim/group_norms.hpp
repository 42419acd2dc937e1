#pragma once

#include <memory>
#include <vector>

#include "trireme/autograd/model.hpp"
#include "trireme/core/export.hpp"
#include "trireme/core/range.hpp"
#include "trireme/core/step_summary.hpp"
#include "trireme/optim/parameter_rules.hpp"

namespace trireme TRIREME_EXPORT {
namespace optim {

// Gradient norms of parameter groups, in the memory of the store's device. Each group with a clip_norm has its own norm; all
// other parameters share one norm.
class GroupNorms {
 public:
  GroupNorms(Model& model, const ParameterRules& rules, const std::vector<ResolvedRule>& resolved);

  bool are_needed() const { return count_ > 1; }

  // Measures the norms of `used` parameters; `ranges` hold the reduced gradients of this rank. Collective if norms are needed.
  // Throws with FixedBits if ranks share the optimizer's work.
  void measure(const std::vector<Range>& ranges, const std::vector<bool>& used);

  const StepTotals* of(const ResolvedRule& rule) const;  // with the squares of the rule's parameters; null: not needed

 private:
  bool counts(const ParameterInfo& info) const;

  Model& model_;
  std::vector<ResolvedRule> resolved_;
  int count_ = 1;
  std::shared_ptr<device::Storage> totals_;  // by ResolvedRule::clips_with
};

}  // namespace optim
}  // namespace trireme
