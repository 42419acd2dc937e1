#pragma once

#include "trireme/autograd/flat_store.hpp"

namespace trireme {

// While in scope, a model's parameters are constants to what is recorded (torch's requires_grad_(false)): gradients pass
// through the model to its input, and its own stay as they are. All else, as batch norm's running statistics, goes on.
//
//   const FrozenParameters frozen(discriminator.store());
//   const auto logits = discriminator.logits(generator.images(latent));
class FrozenParameters {
 public:
  explicit FrozenParameters(FlatStore& store) : store_(store), before_(store.requires_gradient()) {
    store.set_requires_gradient(false);
  }
  ~FrozenParameters() { store_.set_requires_gradient(before_); }
  FrozenParameters(const FrozenParameters&) = delete;
  FrozenParameters& operator=(const FrozenParameters&) = delete;

 private:
  FlatStore& store_;
  bool before_;
};

}  // namespace trireme
