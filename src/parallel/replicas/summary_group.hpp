#pragma once

#include <vector>

#include "parallel/replicas/exact_sum.hpp"
#include "trireme/autograd/model.hpp"
#include "trireme/mesh/process_mesh.hpp"

namespace trireme::parallel {

// The ranks whose parts make up a step's summary, and which part is this rank's. Where each rank holds the whole model these
// are the replicas; otherwise the ranks of all axes: stages hold different parameters, ranks of a tensor axis hold parts of
// some and the same of the others, and compute the same loss; so do ranks of an expert axis, with losses of their own.
class SummaryGroup {
 public:
  SummaryGroup(Model& model, const ProcessMesh& mesh);  // collective

  const Group& group() const { return group_; }
  bool whole_model() const { return whole_model_; }

  bool counts_loss() const { return tensor_rank_ == 0; }
  int num_loss_ranks() const { return num_loss_ranks_; }  // that compute a loss: of each pipeline one stage

  // Of the reduced gradients in a range, those that no other rank of the model counts; nan where any of them is inf or nan.
  double sum_of_squares(const Range& range) const;
  void add_squares(const Range& range, ExactSum& sum) const;  // the same, as SquareSum adds under fixed bits

  bool first_replica() const { return data_rank_ == 0; }

  // Of stages that hold a parameter the first one counts it.
  bool counts(const ParameterInfo& parameter) const {
    return parameter.tied_ranks.empty() || parameter.tied_ranks.front() == pipeline_rank_;
  }

  // This stage's parameters among those of all stages.
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
  std::vector<Range> counted_elsewhere_;  // by the first rank of the tensor or expert axis; ascending
};

}  // namespace trireme::parallel
