#pragma once

#include <vector>

#include "parallel/replicas/replicas.hpp"
#include "parallel/step/summary_fields.hpp"

namespace trireme::parallel {

// Which parameters a step has used: optimizers leave the others alone.
class UsedParameters {
 public:
  explicit UsedParameters(const Replicas& replicas)
      : replicas_(replicas), used_(static_cast<std::size_t>(replicas.store.num_parameters()), false) {}

  void note(int parameter) { used_[static_cast<std::size_t>(parameter)] = true; }
  void note_all_with_gradient();

  // Used is what any rank has used; of a parameter that several stages hold, in any of them.
  void add_to(SummaryFields& fields, StepSummary& summary) const;

 private:
  const Replicas& replicas_;
  std::vector<bool> used_;  // by parameter
};

}  // namespace trireme::parallel
