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

// Norms of the gradients of parameter groups, in the memory of the store's device: where a group has a clip_norm, it is
// measured by itself, and all other parameters together.
class GroupNorms {
 public:
  GroupNorms(Model& model, const ParameterRules& rules, const std::vector<ResolvedRule>& resolved);

  bool are_needed() const { return count_ > 1; }

  // Of the gradients of `used` parameters, which this rank has reduced in these ranges. Collective where a group is needed. An
  // error where ranks share the optimizer's work and training is to give the same bits with any number of them.
  void measure(const std::vector<Range>& ranges, const std::vector<bool>& used);

  const StepTotals* of(const ResolvedRule& rule) const;  // whose squares are those of the rule's parameters; null: not needed

 private:
  bool counts(const ParameterInfo& info) const;

  Model& model_;
  std::vector<ResolvedRule> resolved_;
  int count_ = 1;
  std::shared_ptr<device::Storage> totals_;  // by ResolvedRule::clips_with
};

}  // namespace optim
}  // namespace trireme
