#pragma once

#include <concepts>
#include <string_view>
#include <utility>

#include "trireme/autograd/model.hpp"
#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

// While a FrozenParameters is in scope, the tape records the parameters of a model, or of one of its modules, as constants
// (torch's requires_grad_(false)). Gradients still flow through to the input; the parameters' own gradients do not change.
// Batch norm's running statistics are updated as usual.
//
//   const FrozenParameters frozen(discriminator);
//   const auto logits = discriminator.logits(generator.images(latent));
class FrozenParameters {
 public:
  explicit FrozenParameters(Model& model, std::string_view module = {}) : switches_(model.gradients()), before_(switches_) {
    switches_.set(module, false);
  }
  template <typename M>
  requires requires(const M& module) {
    { module.model() } -> std::same_as<Model&>;
    { module.name() } -> std::convertible_to<std::string_view>;
  }
  explicit FrozenParameters(const M& module) : FrozenParameters(module.model(), module.name()) {}
  ~FrozenParameters() { switches_ = std::move(before_); }
  FrozenParameters(const FrozenParameters&) = delete;
  FrozenParameters& operator=(const FrozenParameters&) = delete;

 private:
  ModuleSwitches& switches_;
  ModuleSwitches before_;
};

}  // namespace trireme
