#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trireme/autograd/operations/elementwise.hpp"
#include "trireme/core/export.hpp"
#include "trireme/nn/base/module.hpp"

namespace trireme TRIREME_EXPORT {
namespace nn {

// Modules and functions one after the other. Both are numbered as in torch.nn.Sequential, so that weights have the same names:
// "<name>.0.weight", ...
//
//   Sequential mlp{*this, "mlp"};
//   ...
//   mlp.add<Linear>(nn::LinearOptions{.in = 8, .out = 32});
//   mlp.add([](const auto& x) { return relu(x); });
//   mlp.add<Linear>(nn::LinearOptions{.in = 32, .out = 8});
//
// Modules and functions take and return the compute type. The input and output of modules that work in the master type, such as
// norms, are cast.
template <typename P, typename D = Cpu>
class Sequential : public Module<P, D> {
 public:
  using typename Module<P, D>::Stream;
  using typename Module<P, D>::Value;

  Sequential(const Module<P, D>& parent, std::string_view name) : Module<P, D>(parent, name) {}

  // Constructs L(*this, its number, arguments...). The reference is valid as long as this object exists.
  template <typename L, typename... Arguments>
  const L& add(const Arguments&... arguments) {
    const auto module = std::make_shared<const L>(*this, std::to_string(layers_.size()), arguments...);
    layers_.push_back([module](const Value& x) {
      if constexpr (requires { module->forward(x); }) {
        return value_of(module->forward(x));
      } else {
        return value_of(module->forward(cast<typename P::Master>(x)));
      }
    });
    return *module;
  }
  template <typename F>
  requires std::invocable<const F&, const Value&> || std::invocable<const F&, const Stream&>
  void add(F function) {
    layers_.push_back([function = std::move(function)](const Value& x) {
      if constexpr (std::invocable<const F&, const Value&>) {
        return value_of(function(x));
      } else {
        return value_of(function(cast<typename P::Master>(x)));
      }
    });
  }

  Value forward(const Value& x) const {
    Value y = x;
    for (const auto& layer : layers_) y = layer(y);
    return y;
  }

 private:
  static const Value& value_of(const Value& y) { return y; }
  static Value value_of(const Stream& y) requires(!std::same_as<Value, Stream>) { return cast<typename P::Compute>(y); }

  std::vector<std::function<Value(const Value&)>> layers_;
};

}  // namespace nn
}  // namespace trireme
