#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "trireme/autograd/flat_store.hpp"
#include "trireme/autograd/module_switches.hpp"
#include "trireme/core/collectives.hpp"

namespace trireme {

// Where a model lies among the ranks, and the seed of its first values: parallel::model_context makes one of a mesh. A model
// takes it at construction; written once, it is then plain or split.
struct ModelContext {
  Axis pipeline = {};  // ranks that divide the list of layers; null: all layers lie here
  Axis tensor = {};    // ranks that split layers between them; null: layers lie here as a whole
  Axis batch = {};     // ranks that share batch norm's batch; DataParallel sets it
  // The ranks of the first and of the last stage, on both of them: what these stages share is held twice. Null: one rank has
  // both.
  Axis ends = {};
  // Between split layers every rank of the tensor axis has its own rows [rows / size, width] of what they pass on, not all of
  // them (Korthikanti et al. 2022, arXiv 2205.05198).
  bool sequence_parallel = false;
  int chunks = 1;                        // stages of each rank of the pipeline axis
  std::vector<double> layer_costs = {};  // by which models divide their layers into stages; empty: as evenly as can be
  std::uint64_t seed = 1;                // of first values, and of the random numbers of steps

  int num_stages() const;           // of all ranks together
  std::vector<int> stages() const;  // that lie here: stage s lies on rank s % ranks
  bool has_stage(int stage) const;
};

// The same context. Error{invalid_argument} where it has more than one stage: for models that are not divided into stages.
const ModelContext& one_stage(const ModelContext& context, std::string_view model);

// What the modules of a model share. The root module makes it, or code without modules:
//
//   Model model(DType::float32);
//   const int weight = model.store().add("weight", {64, 10}, Initializer::normal(0, 0.02));
//
// The root module stands for its Model: an optimizer, DataParallel and others that take a Model are given either.
class Model {
 public:
  explicit Model(DType dtype) : Model({}, dtype, dtype) {}
  Model(const ModelContext& context, DType dtype, DType compute_dtype, const PlaneDevice& device = plane_device<Cpu>());
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const ModelContext& context() const { return context_; }
  FlatStore& store() { return store_; }

  TrainingModes& modes() { return modes_; }  // for layers that tell training from evaluation: batch norm, dropout

  // Whether a module's parameters enter the tape; otherwise they are constants. See FrozenParameters.
  ModuleSwitches& gradients() { return gradients_; }

  // ModelContext::batch.
  void set_batch_axis(Axis axis) { context_.batch = std::move(axis); }

 private:
  ModelContext context_;
  FlatStore store_;
  TrainingModes modes_;
  ModuleSwitches gradients_;
};

}  // namespace trireme
