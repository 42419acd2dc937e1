#pragma once

#include <fmt/ranges.h>

#include <utility>

#include "trireme/core/error.hpp"
#include "trireme/core/export.hpp"
#include "trireme/ops/update/each_optimizer.hpp"
#include "trireme/optim/named.hpp"
#include "trireme/optim/optimizers.hpp"

namespace trireme TRIREME_EXPORT {
namespace optim {
namespace detail {

template <typename Options>
Options options_of(const NamedOptions& named) {
  Options options;
  options.learning_rate = named.learning_rate;
  options.weight_decay = named.weight_decay;
  options.decay = named.decay;
  options.groups = named.groups;
  if constexpr (requires { options.beta1; }) {
    options.beta1 = named.beta1.value_or(options.beta1);
    options.beta2 = named.beta2.value_or(options.beta2);
  }
  if constexpr (requires { options.momentum; }) options.momentum = named.beta1.value_or(options.momentum);
  if constexpr (requires { options.nesterov; }) options.nesterov = named.nesterov.value_or(options.nesterov);
  if constexpr (requires { options.epsilon; }) options.epsilon = named.epsilon.value_or(options.epsilon);
  if constexpr (requires { options.smoothing; }) options.smoothing = named.beta2.value_or(options.smoothing);
  return options;
}

template <template <typename, typename> typename Kind, typename Options, typename P, typename D>
std::unique_ptr<Optimizer<P, D>> make(Model& model, const NamedOptions& options) {
  return std::make_unique<Kind<P, D>>(model, options_of<Options>(options));
}

template <typename P, typename D>
using Make = std::unique_ptr<Optimizer<P, D>> (*)(Model&, const NamedOptions&);

#define TRIREME_MAKER(name, Name, ...) {#name, make<Name, Name##Options, P, D>},
template <typename P, typename D>
constexpr std::pair<const char*, Make<P, D>> makers[] = {
    TRIREME_EACH_OPTIMIZER(TRIREME_MAKER){"adamw", make<AdamW, AdamWOptions, P, D>},
    {"adamw_8bit", make<AdamW8bit, AdamW8bitOptions, P, D>}};
#undef TRIREME_MAKER

}  // namespace detail

template <typename D>
std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const auto& [name, maker] : detail::makers<Float32, D>) names.emplace_back(name);
  return names;
}

template <typename P, typename D>
std::unique_ptr<Optimizer<P, D>> make_optimizer(const std::string& name, Model& model, const NamedOptions& options) {
  for (const auto& [known, maker] : detail::makers<P, D>) {
    if (name == known) return maker(model, options);
  }
  throw Error({.code = ErrorCode::invalid_argument,
               .message = fmt::format("there is no optimizer called {}", name),
               .hint = fmt::format("take one of {}", fmt::join(optimizer_names<D>(), ", "))});
}

}  // namespace optim
}  // namespace trireme
