#include "trireme/nn/weights/lora.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "trireme/core/error.hpp"

namespace trireme::nn {
namespace {

// The layer that a weight belongs to, if an adapter adds to it; null: none.
const TargetableLayer* adapted_layer(Model& model, std::string_view weight) {
  if (!model.context().lora || model.adapter_merged() || !weight.ends_with(".weight")) return nullptr;
  const std::string_view module = weight.substr(0, weight.size() - std::string_view(".weight").size());
  const auto layer = std::ranges::find(model.targetable(), module, &TargetableLayer::module);
  if (layer == model.targetable().end()) return nullptr;
  return std::ranges::any_of(layer->parts, &TargetableLayer::Part::is_target) ? &*layer : nullptr;
}

// For each row that lies here, the index of its part among the targets; below 0: its part is not a target.
std::vector<int> targets_of_rows(const TargetableLayer& layer, const Placement& placement) {
  std::vector<int> of_whole;
  int next = 0;
  for (const TargetableLayer::Part& part : layer.parts) {
    of_whole.insert(of_whole.end(), static_cast<std::size_t>(part.rows), part.is_target ? next++ : -1);
  }
  if (placement.dim != 0) return of_whole;
  std::vector<int> here;
  for (const Range& range : placement.ranges) {
    here.insert(here.end(), of_whole.begin() + range.begin, of_whole.begin() + range.end);
  }
  return here;
}

template <typename T>
void merge(Model& model) {
  FlatStore& store = model.store();
  for (int index = 0; index < store.num_parameters(); ++index) {
    if (adapted_layer(model, store.parameter(index).name) != nullptr) store.write_values(index, merged_values<T>(model, index));
  }
  store.refresh_compute_copy();
}

}  // namespace

bool is_of_adapter(std::string_view parameter) {
  return parameter.ends_with(".lora_A.weight") || parameter.ends_with(".lora_B.weight");
}

// The rows of B are in the order of the weight's rows that belong to targets.
template <typename T>
Tensor<T> merged_values(Model& model, int index) {
  FlatStore& store = model.store();
  const ParameterInfo& weight = store.parameter(index);
  Tensor<T> values = store.read_values<T>(index);
  const TargetableLayer* layer = adapted_layer(model, weight.name);
  if (layer == nullptr) return values;
  const Tensor<T> a = store.read_values<T>(store.find(layer->module + ".lora_A.weight"));
  const Tensor<T> b = store.read_values<T>(store.find(layer->module + ".lora_B.weight"));
  const std::int64_t width = a.dim(1), rank = b.dim(1);
  const double scale = model.context().lora->scale();
  const std::vector<int> targets = targets_of_rows(*layer, weight.placement);
  std::vector<double> sums(static_cast<std::size_t>(width));
  const T* of_b = b.data();
  for (std::size_t row = 0; row < targets.size(); ++row) {
    if (targets[row] < 0) continue;
    std::ranges::fill(sums, 0.0);
    for (std::int64_t k = 0; k < rank; ++k) {
      const double factor = static_cast<double>(of_b[k]);
      const T* of_a = a.data() + (targets[row] * rank + k) * width;
      for (std::int64_t i = 0; i < width; ++i) sums[static_cast<std::size_t>(i)] += factor * static_cast<double>(of_a[i]);
    }
    T* const of_weight = values.data() + static_cast<std::int64_t>(row) * width;
    for (std::int64_t i = 0; i < width; ++i) {
      of_weight[i] = static_cast<T>(static_cast<double>(of_weight[i]) + scale * sums[static_cast<std::size_t>(i)]);
    }
    of_b += rank;
  }
  return values;
}

void merge_adapter(Model& model) {
  require(model.context().lora.has_value(), "merge_adapter() of a model without adapters: its ModelContext has no lora");
  require(!model.adapter_merged(), "merge_adapter() of a model whose adapters are merged already");
  model.store().dtype() == DType::float64 ? merge<double>(model) : merge<float>(model);
  model.set_adapter_merged();
}

template Tensor<float> merged_values<float>(Model&, int);
template Tensor<double> merged_values<double>(Model&, int);

}  // namespace trireme::nn
