#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trireme/autograd/flat_store.hpp"
#include "trireme/autograd/lora_options.hpp"
#include "trireme/autograd/module_switches.hpp"
#include "trireme/core/collectives.hpp"
#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

inline constexpr int all_layers = std::numeric_limits<int>::max();  // for ModelContext::recompute_layers

// How a model is divided among the ranks, and the seed of the model. parallel::model_context makes a ModelContext from a mesh.
// The constructor of a model takes the context, so the same code makes a model on one rank or a model that is split over ranks.
struct ModelContext {
  Axis pipeline = {};  // ranks that divide the list of layers; null: all layers lie here
  Axis tensor = {};    // ranks that split layers between them; null: layers lie here as a whole
  Axis expert = {};    // ranks that divide the experts of a mixture, each with samples of its own; null: all experts lie here
  Axis batch = {};     // ranks over which batch norm is synchronised; DataParallel sets it
  // Between split layers, each rank of the tensor axis holds only its own rows [rows / size, width] of the activations
  // (Korthikanti et al. 2022, arXiv 2205.05198).
  bool sequence_parallel = false;
  int chunks = 1;                        // stages of each rank of the pipeline axis
  std::vector<double> layer_costs = {};  // by which the list of layers is cut into stages; empty: the layers' own costs
  int recompute_layers = 0;              // see parallel::ModelContextOptions
  std::uint64_t seed = 1;                // of initial values, and of the random numbers of steps
  BatchRows rows = {};                   // for layers that keep values of each row, see nn::Carried
  std::optional<LoraOptions> lora = {};  // freezes the model and trains low-rank adapters

  const Axis& parts() const { return tensor != nullptr ? tensor : expert; }  // ranks that hold parts of parameters

  int num_stages() const;           // of all ranks together
  std::vector<int> stages() const;  // the stages that lie here: stage s lies on rank s % ranks
};

// The state that the modules of a model share. The root module makes the Model. Code without modules makes a Model itself:
//
//   Model model(DType::float32);
//   const int weight = model.store().add("weight", {64, 10}, Initializer::normal(0, 0.02));
//
// A root module converts to its Model. So optimizers, DataParallel and others that take a Model also take a root module.
class Model {
 public:
  explicit Model(DType dtype) : Model({}, dtype, dtype) {}
  Model(const ModelContext& context, DType dtype, DType compute_dtype, const PlaneDevice& device = plane_device<Cpu>());
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const ModelContext& context() const { return context_; }
  FlatStore& store() { return store_; }

  TrainingModes& modes() { return modes_; }  // for layers that differ between training and evaluation: batch norm, dropout

  // Whether the tape records a module's parameters as parameters or as constants. See FrozenParameters.
  ModuleSwitches& gradients() { return gradients_; }

  // share() says that a module uses a parameter that another module registered. set_lookup() says that a forward pass looks up
  // some rows of a parameter instead of multiplying by the whole parameter. Ties between layers and costs of layers follow from
  // these calls. Parameters are given by number.
  struct Shared {
    int parameter;
    std::string module;
  };
  void share(int parameter, std::string module);  // before the layers are divided into stages
  const std::vector<Shared>& shared() const { return shared_; }
  void set_lookup(int parameter) { lookups_.push_back(parameter); }
  const std::vector<int>& lookups() const { return lookups_; }

  // The linear layers that LoRA's targets can name. When the model is complete, a target that names none of these layers is an
  // Error.
  void add_targetable(TargetableLayer layer) { targetable_.push_back(std::move(layer)); }
  const std::vector<TargetableLayer>& targetable() const { return targetable_; }
  // Whether the adapters are merged into the weights and skipped in the forward pass, see nn::merge_adapter.
  void set_adapter_merged() { adapter_merged_ = true; }
  bool adapter_merged() const { return adapter_merged_; }

  // Sets ModelContext::batch.
  void set_batch_axis(Axis axis) { context_.batch = std::move(axis); }

 private:
  ModelContext context_;
  FlatStore store_;
  TrainingModes modes_;
  ModuleSwitches gradients_;
  std::vector<Shared> shared_;
  std::vector<int> lookups_;
  std::vector<TargetableLayer> targetable_;
  bool adapter_merged_ = false;
};

// A model with a Precision and a Device, as a root module. An optimizer deduces its template arguments from the model:
//
//   optim::AdamW optimizer(net, {.weight_decay = 0.1});  // net: nn::Module<Float32>, so this is an AdamW<Float32, Cpu>
template <typename M>
concept TypedModel = std::convertible_to<const M&, Model&> && requires {
  typename M::Precision;
  typename M::Device;
};

}  // namespace trireme
