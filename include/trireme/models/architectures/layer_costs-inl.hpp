#pragma once

#include "trireme/core/export.hpp"
#include "trireme/models/architectures/layer_costs.hpp"
#include "trireme/nn/staged/layer_costs.hpp"

namespace trireme TRIREME_EXPORT {
namespace models {

template <typename P, typename D>
std::vector<double> measured_layer_costs(const GptOptions& options, std::int64_t batch) {
  GptOptions one_block = options;
  one_block.layers = 1;
  Gpt<P, D> model(one_block);
  model.initialize();
  Tensor<std::int32_t> tokens({batch, options.block});
  for (std::int64_t i = 0; i < tokens.numel(); ++i) tokens.data()[i] = static_cast<std::int32_t>(i % options.vocabulary);
  const Tensor<std::int32_t, D> there = tokens.to<D>();
  const std::vector<double> seconds = nn::measured_layer_costs(model, {.tokens = there, .targets = there});
  std::vector<double> costs(static_cast<std::size_t>(options.layers) + 2, seconds[1]);
  costs.front() = seconds[0];
  costs.back() = seconds[2];
  return costs;
}

}  // namespace models
}  // namespace trireme
