#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "trireme/autograd/recompute.hpp"
#include "trireme/core/export.hpp"
#include "trireme/core/range.hpp"
#include "trireme/nn/base/flow.hpp"
#include "trireme/nn/base/module.hpp"
#include "trireme/nn/base/module_list.hpp"
#include "trireme/nn/staged/in_layer.hpp"

namespace trireme TRIREME_EXPORT {
namespace nn {

namespace detail {

template <typename P, typename D>
TRIREME_EXPORT std::true_type is_module(const Module<P, D>*);
std::false_type is_module(const void*);
template <typename L>
inline constexpr bool is_module_v = decltype(is_module(static_cast<const L*>(nullptr)))::value;

template <typename L>
struct IsModuleList : std::false_type {};
template <typename M>
struct IsModuleList<ModuleList<M>> : std::true_type {};

// A module of a layer, as the division into stages sees it.
struct StagedModule {
  std::string name;
  std::optional<double> cost = {};  // from its cost(), if it has one
};
struct StagedLayer {
  std::vector<StagedModule> modules;
  std::optional<double> cost = {};  // of the layer; empty: the costs of its modules plus `more`
  double more = 0;

  std::string str() const;  // names of the modules, with commas
};

// Divides the list into the stages of the model's context. Each rank of the pipeline axis keeps only the parameters and
// buffers of its own stages. Throws Error{invalid_argument} if a parameter or buffer belongs to no layer, or if the number of
// costs is wrong. Returns the layers of each stage.
std::vector<Range> divide_model(Model& model, const std::vector<StagedLayer>& layers);

// The list of layers for tapes, with the loss as one more layer at the end.
std::vector<LayerOfList> numbered(const std::vector<StagedLayer>& layers);

[[noreturn]] void refuse_forward(const ModelContext& context);
[[noreturn]] void refuse_without_model();

template <typename L, typename X, typename Batch>
auto call_layer(const L& layer, const X& x, const Batch& batch) {
  if constexpr (requires { layer.forward(x, batch); }) {
    return layer.forward(x, batch);
  } else {
    return layer.forward(x);
  }
}

template <typename Result>
struct RequireResult {
  static_assert(!std::is_void_v<Result>,
                "a layer of a list returns the input of the next layer, but this layer returns nothing");
};

// A layer made of some modules and a function that computes with them.
template <typename F>
class FunctionLayer {
 public:
  FunctionLayer(std::vector<StagedModule> modules, F function) : layer_{std::move(modules)}, function_(std::move(function)) {}

  // Sets the layer's cost, in the unit of the other layers' costs.
  FunctionLayer costs(double cost) const {
    FunctionLayer result = *this;
    result.layer_.cost = cost;
    return result;
  }

  const StagedLayer& staged() const { return layer_; }
  template <typename... X>
  requires std::invocable<const F&, const X&...>
  auto forward(const X&... x) const {
    static_cast<void>(RequireResult<decltype(function_(x...))>());
    return function_(x...);
  }

 private:
  StagedLayer layer_;
  F function_;
};

// A layer that is a module, held by reference, because the model owns it. Other layers are held by value.
template <typename L>
class ModuleLayer {
 public:
  explicit ModuleLayer(const L& module) : module_(&module) {}

  StagedLayer staged() const {
    StagedModule module{.name = module_->name()};
    if constexpr (requires { module_->cost(); }) module.cost = module_->cost();
    return {.modules = {std::move(module)}};
  }
  template <typename... X>
  requires requires(const L& module, const X&... x) { module.forward(x...); }
  auto forward(const X&... x) const {
    static_cast<void>(RequireResult<decltype(module_->forward(x...))>());
    return module_->forward(x...);
  }

 private:
  const L* module_;
};

template <typename L>
auto as_layer(const L& layer) {
  if constexpr (is_module_v<L>) {
    return ModuleLayer<L>(layer);
  } else {
    return layer;
  }
}

// Several layers, one after the other, as one layer.
template <typename... L>
class Chain {
 public:
  explicit Chain(L... layers) : layers_(std::move(layers)...) {}

  StagedLayer staged() const {
    StagedLayer all;
    std::apply(
        [&all](const auto&... layers) {
          for (const StagedLayer& layer : {StagedLayer(layers.staged())...}) {
            for (StagedModule module : layer.modules) {
              if (layer.cost) module.cost = 0;
              all.modules.push_back(std::move(module));
            }
            all.more += layer.cost.value_or(0) + layer.more;
          }
        },
        layers_);
    return all;
  }

  template <typename X>
  auto forward(const X& x) const {  // x: a flow, or the batch if this is the first layer of the list
    return from<1>(std::get<0>(layers_).forward(x), x);
  }
  template <typename X, typename Batch>
  auto forward(const X& x, const Batch& batch) const {
    return from<1>(call_layer(std::get<0>(layers_), x, batch), batch);
  }

 private:
  template <std::size_t index, typename X, typename Batch>
  auto from(const X& x, const Batch& batch) const {
    if constexpr (index == sizeof...(L)) {
      return x;
    } else {
      return from<index + 1>(call_layer(std::get<index>(layers_), x, batch), batch);
    }
  }

  std::tuple<L...> layers_;
};

}  // namespace detail

// Joins several layers into one layer of a list; the flow goes through them in this order.
template <typename... L>
auto chain(const L&... layers) {
  return detail::Chain(detail::as_layer(layers)...);
}

// A model that is a list of layers, which a pipeline can cut into stages. The same code trains the model on one or many ranks:
//
//   struct Net : nn::Staged<Float32, Cpu, data::TokenBatch> {
//     explicit Net(const ModelContext& context = {}) : Staged(context) { layers(embed, blocks, nn::chain(norm, output)); }
//     Loss<float> loss(const Value& y, const data::TokenBatch& batch) const { return cross_entropy(y, batch.targets); }
//
//     TokenEmbedding embed{*this, "embed", {.vocabulary = 256, .positions = 128, .width = 128}};
//     nn::ModuleList<Block> blocks{*this, "block", 4};
//     LayerNorm norm{*this, "norm", {.width = 128}};
//     TokenLogits output{*this, "output", embed.tokens};  // tied
//   };
//   ...
//   step.backward(net, batches);  // parallel::Step, on one rank or in a pipeline
//
// All ranks construct all layers; a rank has memory for parameters and buffers of its own stages only. A layer's parameters
// are the parameters of its modules and of the modules within them, including parameters that these modules share() with other
// modules. Two stages that use one parameter both hold it, and its gradients are summed. A module may be in several layers;
// each layer draws its own random numbers. A module with buffers that is used by layers on several ranks is an error.
//
// Flow: the type that each layer passes to the next, see flow.hpp. Output: the type that the last layer returns.
template <typename P, typename D, typename Batch, typename Flow = Variable<typename P::Master, D>,
          typename Output = Variable<typename P::Compute, D>>
class Staged : public Module<P, D> {
 public:
  using BatchType = Batch;
  using FlowType = Flow;
  using OutputType = Output;

  explicit Staged(const ModelContext& context = {}) : Module<P, D>(context) {}

  std::size_t num_layers() const { return inner_.size() + 1; }
  const std::vector<Range>& stages() const { return stages_; }  // the layers of each stage

  // Computes the whole model. In a pipeline all ranks call forward(), without a tape. The stages compute one after the other,
  // and all ranks get the result.
  Output forward(const Batch& batch) const {
    Output output{};
    const std::optional<Flow> x = before_last_layer(batch);
    if (x) output = last_layer(*x, batch);
    const Collectives* ranks = this->context().pipeline.get();
    if (ranks == nullptr) return output;
    return unpack<Output>(
        broadcast_flow(*ranks, pack(std::move(output)), rank_of_last_stage(), device::memory_of<D>(), "output of a model"));
  }

  // Runs consecutive layers, but not the last layer of the model. x: the output of the layer before `layers`. With a tape, the
  // first ModelContext::recompute_layers of these layers are computed again in the backward pass.
  Flow run_layers(const Range& layers, const Flow& x, const Batch& batch) const {
    Flow flow = x;
    const std::int64_t recomputed = Tape::current() == nullptr ? 0 : this->context().recompute_layers;
    const auto kept = recomputed == 0 ? nullptr : std::make_shared<const Batch>(batch);
    for (std::int64_t layer = layers.begin; layer < layers.end; ++layer) {
      const detail::InLayer in_layer(numbered_[static_cast<std::size_t>(layer)]);
      const auto& run = inner_[static_cast<std::size_t>(layer)];
      flow = layer - layers.begin < recomputed ? recompute(recomputable(run, kept), flow) : run(flow, batch);
    }
    return flow;
  }
  Output last_layer(const Flow& x, const Batch& batch) const {
    const detail::InLayer in_layer(numbered_[inner_.size()]);
    return last_(x, batch);
  }

  // While the returned object lives, random numbers are drawn as in a layer after the last layer. Use it for the model's
  // loss().
  detail::InLayer in_loss() const { return detail::InLayer(numbered_.back()); }

  // Returns the input of the model's last layer, on the rank that has this layer; nothing on other ranks. Stages run one after
  // the other.
  std::optional<Flow> before_last_layer(const Batch& batch) const {
    return before_last_layer_by([&](const Range& layers, const Flow& x) { return run_layers(layers, x, batch); });
  }
  // As before_last_layer(), for layers that compute in another way: run(layers, x) returns the output of these consecutive
  // layers.
  template <typename Run>
  std::optional<Flow> before_last_layer_by(const Run& run) const {
    require(!stages_.empty(), "a model of stages has no layers: its constructor calls layers()");
    const Collectives* ranks = this->context().pipeline.get();
    if (ranks != nullptr && Tape::current() != nullptr) detail::refuse_forward(this->context());
    constexpr std::string_view name = "input of a stage";
    Flow x{};
    for (const int stage : this->context().stages()) {
      if (ranks != nullptr && stage > 0) {
        x = unpack<Flow>(receive_flow(*ranks, (stage - 1) % ranks->size(), device::memory_of<D>(), name));
      }
      const Range& layers = stages_[static_cast<std::size_t>(stage)];
      if (stage + 1 == this->context().num_stages()) return run(Range{layers.begin, layers.end - 1}, x);
      x = settled(run(layers, x));
      if (ranks != nullptr) send_flow(*ranks, pack(x), (stage + 1) % ranks->size(), name);
    }
    return std::nullopt;
  }

  int rank_of_last_stage() const {
    const Collectives* ranks = this->context().pipeline.get();
    return ranks == nullptr ? 0 : (this->context().num_stages() - 1) % ranks->size();
  }

 protected:
  ~Staged() = default;

  // Defines the list of layers. Call it once, after all modules are made. A layer is a module, a chain() of layers, or a
  // layer({modules}, function); a ModuleList counts as one layer for each module. The first layer has forward(batch); the
  // other layers have forward(flow) or forward(flow, batch). Each layer returns a flow, and the last layer returns the output.
  // ModelContext::layer_costs decides how layers are divided into stages. If it is empty, a layer's cost is the number given
  // to layer(...).costs(), or the cost() of its modules, or the sizes of the matrices that its modules multiply by.
  template <typename First, typename... Rest>
  void layers(const First& first, const Rest&... rest) {
    require(stages_.empty(), "layers() of a model is called once");
    static_assert(!detail::IsModuleList<First>::value, "the first layer takes the batch: it can't be a ModuleList");
    std::vector<detail::StagedLayer> list;
    const auto one = detail::as_layer(first);
    list.push_back(one.staged());
    if constexpr (sizeof...(Rest) == 0) {
      last_ = [one](const Flow&, const Batch& batch) -> Output { return one.forward(batch); };
    } else {
      inner_.push_back([one](const Flow&, const Batch& batch) -> Flow { return one.forward(batch); });
      add_layers(list, rest...);
    }
    numbered_ = detail::numbered(list);
    stages_ = detail::divide_model(this->model(), list);
  }

  // Makes a layer of some modules and a function(batch), function(flow) or function(flow, batch) that uses these modules and
  // no other modules.
  template <typename F>
  detail::FunctionLayer<F> layer(std::initializer_list<std::reference_wrapper<const Module<P, D>>> modules, F function) const {
    std::vector<detail::StagedModule> names;
    for (const Module<P, D>& module : modules) names.push_back({.name = module.name()});  // its cost() is not known here
    return {std::move(names), std::move(function)};
  }

 private:
  using InnerLayer = std::function<Flow(const Flow&, const Batch&)>;

  // A layer as a function that the tape may keep longer than the model lives.
  auto recomputable(const InnerLayer& run, std::shared_ptr<const Batch> batch) const {
    return [run, batch = std::move(batch), model = std::weak_ptr(alive_)](const Flow& x) -> Flow {
      if (model.expired()) detail::refuse_without_model();
      return run(x, *batch);
    };
  }

  template <typename L, typename... Rest>
  void add_layers(std::vector<detail::StagedLayer>& list, const L& next, const Rest&... rest) {
    constexpr bool is_last = sizeof...(Rest) == 0;
    if constexpr (detail::IsModuleList<L>::value) {
      static_assert(!is_last, "the last layer returns the output: it can't be a ModuleList");
      for (std::size_t index = 0; index < next.size(); ++index) add_inner(list, next[index]);
    } else if constexpr (is_last) {
      const auto one = detail::as_layer(next);
      list.push_back(one.staged());
      last_ = [one](const Flow& x, const Batch& batch) -> Output { return detail::call_layer(one, x, batch); };
    } else {
      add_inner(list, next);
    }
    if constexpr (!is_last) add_layers(list, rest...);
  }
  template <typename L>
  void add_inner(std::vector<detail::StagedLayer>& list, const L& layer) {
    const auto one = detail::as_layer(layer);
    list.push_back(one.staged());
    inner_.push_back([one](const Flow& x, const Batch& batch) -> Flow { return detail::call_layer(one, x, batch); });
  }

  std::shared_ptr<const bool> alive_ = std::make_shared<const bool>(true);  // lives as long as the model
  std::vector<InnerLayer> inner_;                                           // all layers but the last
  std::function<Output(const Flow&, const Batch&)> last_;
  std::vector<Range> stages_;
  std::vector<LayerOfList> numbered_;
};

// model.loss(output, batch), with the random numbers of the loss.
template <typename Net, typename Output, typename Batch>
auto loss_from(const Net& model, const Output& output, const Batch& batch) {
  const auto in_loss = model.in_loss();
  return model.loss(output, batch);
}

// The loss of a model of stages, model.loss(model.forward(batch), batch). In a pipeline all ranks call loss_of(), without a
// tape. The last stage computes the loss, and all ranks get its numbers.
template <typename Net>
auto loss_of(const Net& model, const typename Net::BatchType& batch) {
  using MasterLoss = std::remove_cvref_t<decltype(as_loss(model.loss(model.forward(batch), batch)))>;
  using Sum = decltype(MasterLoss::sum);
  const auto x = model.before_last_layer(batch);
  const Collectives* ranks = model.context().pipeline.get();
  if (ranks == nullptr) return MasterLoss(as_loss(loss_from(model, model.last_layer(*x, batch), batch)));
  std::array<double, 3> numbers{};  // sum, target_weight, nominal_targets
  if (x) {
    const MasterLoss loss = as_loss(loss_from(model, model.last_layer(*x, batch), batch));
    numbers = {static_cast<double>(loss.sum.value().item()), loss.target_weight.item(),
               static_cast<double>(loss.nominal_targets)};
  }
  ranks->broadcast(std::span<double>(numbers), model.rank_of_last_stage(), "loss").wait_on_host();
  using Tensor = std::remove_cvref_t<decltype(std::declval<Sum>().value())>;
  return MasterLoss{.sum = Sum(Tensor::full({}, static_cast<typename Tensor::value_type>(numbers[0]))),
                    .target_weight = numbers[1],
                    .nominal_targets = static_cast<std::int64_t>(numbers[2])};
}

}  // namespace nn
}  // namespace trireme
