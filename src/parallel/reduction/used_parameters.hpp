#pragma once

#include <vector>

#include "parallel/replicas/replicas.hpp"
#include "parallel/step/summary_fields.hpp"

namespace trireme::parallel {

// Which parameters a step has used; optimizers do not update the others.
class UsedParameters {
 public:
  explicit UsedParameters(const Replicas& replicas)
      : replicas_(replicas), used_(static_cast<std::size_t>(replicas.store.num_parameters()), false) {}

  void note(int parameter) { used_[static_cast<std::size_t>(parameter)] = true; }
  void note_all_with_gradient();

  // A parameter counts as used if any rank used it; a tied parameter if any of its stages did.
  void add_to(SummaryFields& fields, StepSummary& summary) const;

 private:
  const Replicas& replicas_;
  std::vector<bool> used_;  // by parameter
};

}  // namespace trireme::parallel
