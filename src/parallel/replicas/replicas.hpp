#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "parallel/replicas/replica_comparison.hpp"
#include "parallel/replicas/summary_group.hpp"
#include "trireme/autograd/model.hpp"
#include "trireme/comm/base/group.hpp"
#include "trireme/mesh/process_mesh.hpp"

namespace trireme::parallel {

struct ReplicaSettings {
  bool sharded = false;
  int fixed_micro_batches = 0;
  bool synchronize_batch_norm = true;
  int check_replicas = 100;  // steps in which all values are compared; 0: none are
};

// What is decided when a DataParallel is made and never changes: the ranks that train the model together, and what they reduce
// beside gradients.
struct Replicas {
  // A parameter that several ranks of the pipeline axis hold; it has a bucket of its own.
  struct Tied {
    int parameter;  // below 0: others hold it, or it is frozen
    Axis ranks;
  };
  struct BufferRun {  // neighbours
    Range elements;
    ReduceOp op;
  };

  // Collective.
  Replicas(Model& model, const ProcessMesh& mesh, SummaryGroup ranks, const ReplicaSettings& settings);

  bool has_fixed_bits() const { return fixed_micro_batches > 0; }
  ReduceOp op() const { return has_fixed_bits() ? ReduceOp::fixed_sum : ReduceOp::sum; }
  bool is_tied(int parameter) const { return !store.parameter(parameter).tied_ranks.empty(); }

  // Before each micro-batch: refuses ranks in evaluation beside others in training, where batch norm is synchronised.
  void compare_evaluation() const;

  // After a step: begins to make buffers the same on all replicas.
  std::vector<Pending> reduce_buffers() const;

  // For this rank's GPU, which may be waiting for other ranks: ends with an error where one of them fails.
  void wait_until(const std::function<bool()>& done) const;

  Model& model;
  FlatStore& store;
  Group group;              // the ranks that hold the same part of the model as this one, each with samples of its own
  SummaryGroup summary;     // all ranks of the model
  bool sharded;             // each rank updates what it owns
  int fixed_micro_batches;  // of this rank in a step of fixed bits; 0: gradients are added as they come
  Axis expert;              // the ranks of an expert axis; null: there is none
  std::vector<Tied> tied;   // the same on all ranks of the pipeline axis
  Axis batch_norm;          // null where batch norm is not synchronised
  std::vector<BufferRun> buffer_runs;
  std::shared_ptr<const ReplicaComparison> comparison;  // null where nothing is compared

 private:
  void tie_parameters(const ProcessMesh& mesh);
  void synchronize_buffers(bool synchronize_batch_norm);
};

}  // namespace trireme::parallel
