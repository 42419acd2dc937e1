#pragma once

#include <vector>

#include "parallel/replicas/exact_sum.hpp"
#include "trireme/autograd/model.hpp"
#include "trireme/mesh/process_mesh.hpp"

namespace trireme::parallel {

// The ranks that add up a step's summary, and this rank's part of it. If each rank holds the whole model, these are the
// replicas; otherwise the ranks of all axes. Stages hold different parameters. Ranks of a tensor axis hold parts of some
// parameters and copies of the others, and compute the same loss. Ranks of an expert axis do too, but their losses differ.
class SummaryGroup {
 public:
  SummaryGroup(Model& model, const ProcessMesh& mesh);  // collective

  const Group& group() const { return group_; }
  bool whole_model() const { return whole_model_; }

  bool counts_loss() const { return tensor_rank_ == 0; }
  int num_loss_ranks() const { return num_loss_ranks_; }  // ranks that compute a loss: in a pipeline those of the last stage

  // Sums over the reduced gradients in a range that no other rank of the model counts; not finite if any gradient is not
  // finite.
  double sum_of_squares(const Range& range) const;
  void add_squares(const Range& range, ExactSum& sum) const;  // the same under fixed bits, see SquareSum

  bool first_replica() const { return data_rank_ == 0; }

  // A tied parameter is counted by the first stage that holds it.
  bool counts(const ParameterInfo& parameter) const {
    return parameter.tied_ranks.empty() || parameter.tied_ranks.front() == pipeline_rank_;
  }

  // The number of parameters in all stages, and the number of this stage's first.
  std::size_t num_parameters() const { return num_parameters_; }
  std::size_t first_parameter() const { return first_parameter_; }

 private:
  double sum_of_squares(const Range& range, const std::vector<Range>& of) const;
  void add_squares(const Range& range, ExactSum& sum, double factor, const std::vector<Range>& of) const;

  FlatStore& store_;
  Group group_;
  bool whole_model_;
  int data_rank_;
  int tensor_rank_;
  int expert_rank_;
  int pipeline_rank_;
  int num_loss_ranks_;
  std::size_t num_parameters_ = 0;
  std::size_t first_parameter_ = 0;
  std::vector<Range> counted_;            // ascending
  std::vector<Range> counted_elsewhere_;  // ranges that the first rank of the tensor or expert axis counts; ascending
};

}  // namespace trireme::parallel
