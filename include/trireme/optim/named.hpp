#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/optim/optimizer.hpp"

namespace trireme TRIREME_EXPORT {
namespace optim {

// What trainers offer for every optimizer; one that has no such option leaves it alone. What is not given is the optimizer's
// own.
struct NamedOptions {
  double learning_rate = 1e-3;
  double weight_decay = 0;
  std::optional<double> beta1 = {};  // decay of the first moment; the momentum of sgd, lars, rmsprop and muon
  std::optional<double> beta2 = {};  // decay of the second moment; Lion's of the momentum, RMSprop's and Adadelta's smoothing
  std::optional<double> epsilon = {};
  bool nesterov = false;  // of sgd
  Decay decay = Decay::all;
  std::vector<ParameterGroup> groups = {};
};

// Those of ops/update/each_optimizer.hpp, adamw and adamw_8bit.
template <typename D = Cpu>
TRIREME_EXPORT std::vector<std::string> optimizer_names();
extern template std::vector<std::string> optimizer_names<Cpu>();
extern template std::vector<std::string> optimizer_names<Cuda>();

// Throws Error{invalid_argument} for a name that optimizer_names() lacks.
template <typename P, typename D = Cpu>
TRIREME_EXPORT std::unique_ptr<Optimizer<P, D>> make_optimizer(const std::string& name, Model& model,
                                                               const NamedOptions& options);

extern template std::unique_ptr<Optimizer<Float32, Cpu>> make_optimizer(const std::string&, Model&, const NamedOptions&);
extern template std::unique_ptr<Optimizer<MixedBfloat16, Cpu>> make_optimizer(const std::string&, Model&, const NamedOptions&);
extern template std::unique_ptr<Optimizer<MixedFloat16, Cpu>> make_optimizer(const std::string&, Model&, const NamedOptions&);
extern template std::unique_ptr<Optimizer<Float32, Cuda>> make_optimizer(const std::string&, Model&, const NamedOptions&);
extern template std::unique_ptr<Optimizer<MixedBfloat16, Cuda>> make_optimizer(const std::string&, Model&, const NamedOptions&);
extern template std::unique_ptr<Optimizer<MixedFloat16, Cuda>> make_optimizer(const std::string&, Model&, const NamedOptions&);

}  // namespace optim
}  // namespace trireme
