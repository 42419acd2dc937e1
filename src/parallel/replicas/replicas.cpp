#include "parallel/replicas/replicas.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "parallel/step/planes.hpp"

namespace trireme::parallel {

Replicas::Replicas(Model& its_model, const ProcessMesh& mesh, SummaryGroup ranks, const ReplicaSettings& settings)
    : model(its_model),
      store(its_model.store()),
      place_in_batch(mesh.batch().rank()),
      group(mesh.data()),
      summary(std::move(ranks)),
      sharded(settings.sharded),
      fixed_micro_batches(settings.fixed_micro_batches) {
  tie_parameters(mesh);
  synchronize_buffers(settings.synchronize_batch_norm);
  if (settings.check_replicas > 0 && (group.size() > 1 || mesh.pipeline().size() > 1 || mesh.expert().size() > 1)) {
    comparison =
        std::make_shared<const ReplicaComparison>(store, mesh, settings.check_replicas, settings.synchronize_batch_norm);
  }
}

// Collective on the pipeline axis: all its ranks make all groups.
void Replicas::tie_parameters(const ProcessMesh& mesh) {
  if (mesh.expert().size() > 1) {
    expert = std::make_shared<const Group>(mesh.expert().split(0, mesh.expert().rank(), "gradients beside experts"));
  }
  std::map<std::vector<int>, Axis> groups;
  for (const auto& [name, ranks, index] : store.tied()) {
    if (!groups.contains(ranks)) {
      const bool here = std::ranges::count(ranks, mesh.pipeline().rank()) > 0;
      groups[ranks] =
          std::make_shared<const Group>(mesh.pipeline().split(here ? 0 : 1, mesh.pipeline().rank(), "tied parameters"));
    }
    const bool trains = index >= 0 && store.parameter(index).trainable;
    tied.push_back({.parameter = trains ? index : -1, .ranks = groups[ranks]});
  }
}

// Finds the buffers that ranks reduce after each step, and makes the group of synchronised batch norm.
void Replicas::synchronize_buffers(bool synchronize_batch_norm) {
  const BufferPlane& buffers = store.buffers();
  bool statistics = false;
  for (int index = 0; index < buffers.size() && group.size() > 1; ++index) {
    const BufferInfo& buffer = buffers.info(index);
    if (buffer.options.reduction == BufferReduction::none) continue;
    const bool mean = buffer.options.reduction == BufferReduction::mean;
    if (mean && synchronize_batch_norm) {
      statistics = true;
      continue;
    }
    const ReduceOp reduction = mean ? ReduceOp::mean : ReduceOp::max;
    if (buffer_runs.empty() || buffer_runs.back().op != reduction || buffer_runs.back().elements.end != buffer.offset) {
      buffer_runs.push_back({.elements = {buffer.offset, buffer.offset}, .op = reduction});
    }
    buffer_runs.back().elements.end += buffer.shape.numel();
  }
  if (statistics) batch_norm = std::make_shared<const Group>(group.split(0, group.rank(), "batch norm"));
  model.set_batch_axis(batch_norm);
}

std::vector<Pending> Replicas::reduce_buffers() const {
  std::vector<Pending> pending;
  for (const BufferRun& run : buffer_runs) {
    with_elements(store, store.buffers().plane(), run.elements,
                  [&](auto values) { pending.push_back(group.all_reduce(values, run.op, "buffers")); });
  }
  return pending;
}

// Batch norm makes no collective in evaluation mode, so ranks could not notice that others train. This barrier compares the
// modes.
void Replicas::compare_evaluation() const {
  const std::string modes = batch_norm ? model.modes().str() : "";
  if (!modes.empty()) batch_norm->barrier((modes == "evaluation" ? "a step in " : "a step with ") + modes);
}

void Replicas::wait_until(const std::function<bool()>& done) const { group.wait_until(done, "a step of the GPU"); }

}  // namespace trireme::parallel
