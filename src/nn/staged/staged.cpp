#include "trireme/nn/staged/staged.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "trireme/core/error.hpp"
#include "trireme/nn/staged/divide_layers.hpp"

namespace trireme::nn::detail {
namespace {

bool has_module(const StagedLayer& layer, std::string_view name) {
  return std::ranges::any_of(layer.modules, [&](const StagedModule& module) { return is_within(module.name, name); });
}

// A parameter or buffer before the division, and the layers that have it.
struct Use {
  std::string name;
  double multiplied = 0;  // elements of a matrix; 0 for others
  std::vector<std::size_t> layers = {};
};

// All parameters by number.
std::vector<Use> parameters_of(Model& model, const std::vector<StagedLayer>& layers) {
  const FlatStore& store = model.store();
  std::vector<Use> uses;
  for (int number = 0; number < store.num_parameters(); ++number) {
    const ParameterInfo& info = store.registered(number);
    const bool lookup = std::ranges::count(model.lookups(), number) > 0;
    const bool matrix = info.placement.shape.size() > 1 && !lookup;
    uses.push_back({.name = info.name, .multiplied = matrix ? static_cast<double>(info.placement.shape.numel()) : 0});
  }
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    for (Use& use : uses) {
      if (has_module(layers[layer], use.name)) use.layers.push_back(layer);
    }
    for (const auto& [parameter, module] : model.shared()) {
      std::vector<std::size_t>& of = uses[static_cast<std::size_t>(parameter)].layers;
      const bool is_new = of.empty() || of.back() != layer;
      if (is_new && has_module(layers[layer], module)) of.push_back(layer);
    }
  }
  return uses;
}

std::vector<Use> buffers_of(Model& model, const std::vector<StagedLayer>& layers) {
  const BufferPlane& buffers = model.store().buffers();
  std::vector<Use> uses;
  for (int number = 0; number < buffers.size(); ++number) {
    Use& use = uses.emplace_back(Use{.name = buffers.info(number).name});
    for (std::size_t layer = 0; layer < layers.size(); ++layer) {
      if (has_module(layers[layer], use.name)) use.layers.push_back(layer);
    }
  }
  return uses;
}

bool overlap(const StagedLayer& a, const StagedLayer& b) {
  return std::ranges::any_of(a.modules, [&](const StagedModule& of_a) {
    return std::ranges::any_of(b.modules, [&](const StagedModule& of_b) {
      return is_within(of_a.name, of_b.name) || is_within(of_b.name, of_a.name);
    });
  });
}

// A buffer on several ranks would get different values.
void require_on_one_rank(const std::vector<Use>& buffers, const std::vector<std::vector<int>>& ranks) {
  for (std::size_t number = 0; number < buffers.size(); ++number) {
    if (ranks[number].size() < 2) continue;
    throw Error(
        {.code = ErrorCode::invalid_argument,
         .message = fmt::format("the buffer {} belongs to layers on the ranks {} of the pipeline, which would each change "
                                "their own copy",
                                buffers[number].name, fmt::join(ranks[number], ", ")),
         .name = buffers[number].name,
         .hint = "give each of these layers a module of its own"});
  }
}

void require_in_list(const std::vector<Use>& uses) {
  const auto lost = std::ranges::find_if(uses, [](const Use& use) { return use.layers.empty(); });
  if (lost == uses.end()) return;
  throw Error({.code = ErrorCode::invalid_argument,
               .message = fmt::format("{} belongs to no layer of the list that layers() was given", lost->name),
               .name = lost->name,
               .hint = "give layers() its module, or name that in layer({modules}, function)"});
}

// The costs of layers: the cost() of modules that have it, for others the elements of their matrices. A shared matrix counts
// for each module that uses it.
std::vector<double> costs_of(Model& model, const std::vector<StagedLayer>& layers, const std::vector<Use>& parameters) {
  std::vector<double> costs;
  for (const StagedLayer& layer : layers) {
    double cost = layer.more;
    for (const StagedModule& module : layer.modules) {
      if (module.cost) {
        cost += *module.cost;
        continue;
      }
      for (const Use& parameter : parameters) cost += is_within(module.name, parameter.name) ? parameter.multiplied : 0;
      for (const auto& [parameter, user] : model.shared()) {
        if (!is_within(module.name, user)) continue;
        cost += static_cast<double>(model.store().registered(parameter).placement.shape.numel());
      }
    }
    costs.push_back(layer.cost.value_or(cost));
  }
  // As fractions of the largest: equal layers then cost exactly the same, whatever their size.
  const double largest = *std::ranges::max_element(costs);
  if (largest == 0) return std::vector<double>(costs.size(), 1.0);
  for (double& cost : costs) cost /= largest;
  return costs;
}

// The ranks of each parameter or buffer, ascending.
std::vector<std::vector<int>> ranks_of(const std::vector<Use>& uses, const std::vector<Range>& stages, int ranks) {
  std::vector<std::vector<int>> result;
  for (const Use& use : uses) {
    std::vector<int>& of_use = result.emplace_back();
    for (std::size_t stage = 0; stage < stages.size(); ++stage) {
      const auto [begin, end] = stages[stage];
      const bool here = std::ranges::any_of(use.layers, [&](std::size_t layer) {
        return static_cast<std::int64_t>(layer) >= begin && static_cast<std::int64_t>(layer) < end;
      });
      if (here) of_use.push_back(static_cast<int>(stage) % ranks);
    }
    std::ranges::sort(of_use);
    const auto rest = std::ranges::unique(of_use);
    of_use.erase(rest.begin(), rest.end());
  }
  return result;
}

}  // namespace

std::string StagedLayer::str() const {
  std::vector<std::string> names;
  for (const StagedModule& module : modules) names.push_back(module.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

std::vector<Range> divide_model(Model& model, const std::vector<StagedLayer>& layers) {
  const ModelContext& context = model.context();
  const std::vector<Use> parameters = parameters_of(model, layers);
  const std::vector<Use> buffers = buffers_of(model, layers);
  require_in_list(parameters);
  require_in_list(buffers);
  if (context.lora) require_known_targets(*context.lora, model.targetable());
  std::vector<double> costs = context.layer_costs;
  if (costs.empty()) costs = costs_of(model, layers, parameters);
  require(costs.size() == layers.size(), "this model is a list of {} layers, from {} to {}; it got {} costs of layers",
          layers.size(), layers.front().str(), layers.back().str(), costs.size());
  const std::vector<Range> stages = divide_layers(costs, context.num_stages());
  if (context.pipeline != nullptr) {
    const int ranks = context.pipeline->size();
    const auto of_buffers = ranks_of(buffers, stages, ranks);
    require_on_one_rank(buffers, of_buffers);
    model.store().distribute(context.pipeline->rank(), ranks_of(parameters, stages, ranks), of_buffers);
  }
  return stages;
}

std::vector<LayerOfList> numbered(const std::vector<StagedLayer>& layers) {
  std::vector<LayerOfList> all;
  for (std::size_t index = 0; index < layers.size(); ++index) {
    LayerOfList layer{.number = index + 1};
    for (const StagedModule& module : layers[index].modules) layer.modules.push_back(module.name);
    for (std::size_t other = 0; other < index; ++other) {
      if (overlap(layers[index], layers[other])) layer.repetition = std::max(layer.repetition, all[other].repetition + 1);
    }
    all.push_back(std::move(layer));
  }
  all.push_back({.number = layers.size() + 1});
  return all;
}

void refuse_forward(const ModelContext& context) {
  throw Error(
      {.code = ErrorCode::invalid_argument,
       .message = fmt::format("forward() of a model with {} stages on {} ranks can't record on a tape, but a tape is open",
                              context.num_stages(), context.pipeline->size()),
       .hint = "train it by step.backward(model, batches); call forward() outside of steps"});
}

void refuse_without_model() {
  throw Error({.code = ErrorCode::invalid_argument,
               .message = "a model was destroyed before the backward pass, which has to compute its layers again",
               .hint = "keep the model, or make it without ModelContext::recompute_layers"});
}

}  // namespace trireme::nn::detail
