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
  int check_replicas = 100;  // in how many steps all values are compared; 0: never
};

// The ranks that train a model together, and what they reduce besides gradients. Decided when a DataParallel is made; it never
// changes.
struct Replicas {
  // A parameter that several ranks of the pipeline axis hold. It has its own bucket.
  struct Tied {
    int parameter;  // below 0: only other ranks hold it, or it is frozen
    Axis ranks;
  };
  struct BufferRun {  // neighbouring buffers with the same reduction
    Range elements;
    ReduceOp op;
  };

  // Collective.
  Replicas(Model& model, const ProcessMesh& mesh, SummaryGroup ranks, const ReplicaSettings& settings);

  bool has_fixed_bits() const { return fixed_micro_batches > 0; }
  ReduceOp op() const { return has_fixed_bits() ? ReduceOp::fixed_sum : ReduceOp::sum; }
  bool is_tied(int parameter) const { return !store.parameter(parameter).tied_ranks.empty(); }

  // Called before each micro-batch. If batch norm is synchronised, throws if some ranks are in evaluation mode and others in
  // training mode.
  void compare_evaluation() const;

  // Called after a step: begins to reduce buffers over the replicas.
  std::vector<Pending> reduce_buffers() const;

  // Waits for this rank's GPU, which may itself wait for other ranks. Throws if one of them fails.
  void wait_until(const std::function<bool()>& done) const;

  Model& model;
  FlatStore& store;
  int place_in_batch;       // of this rank, among those that share the batch
  Group group;              // the ranks that hold the same part of the model as this one, each with samples of its own
  SummaryGroup summary;     // all ranks of the model
  bool sharded;             // each rank updates only its shard
  int fixed_micro_batches;  // the micro-batches of this rank in a step of fixed bits; 0: no fixed bits
  Axis expert;              // the ranks of an expert axis; null: there is none
  std::vector<Tied> tied;   // the same on all ranks of the pipeline axis
  Axis batch_norm;          // null if batch norm is not synchronised
  std::vector<BufferRun> buffer_runs;
  std::shared_ptr<const ReplicaComparison> comparison;  // null if nothing is compared

 private:
  void tie_parameters(const ProcessMesh& mesh);
  void synchronize_buffers(bool synchronize_batch_norm);
};

}  // namespace trireme::parallel
