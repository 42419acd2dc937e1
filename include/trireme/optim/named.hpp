#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trireme/core/export.hpp"
#include "trireme/optim/optimizer.hpp"

namespace trireme TRIREME_EXPORT {
namespace optim {

// Options that trainers offer for every optimizer. An optimizer ignores options that it does not have, and uses its own
// defaults for options that are not given.
struct NamedOptions {
  double learning_rate = 1e-3;
  double weight_decay = 0;
  std::optional<double> beta1 = {};  // decay of the first moment; the momentum of sgd, lars, rmsprop and muon
  // Decay of the second moment; for Lion, decay of the momentum; for RMSprop and Adadelta, the smoothing.
  std::optional<double> beta2 = {};
  std::optional<double> epsilon = {};
  std::optional<bool> nesterov = {};  // only for sgd and muon
  Decay decay = Decay::all;
  std::vector<ParameterGroup> groups = {};
};

// The names of the optimizers in ops/update/each_optimizer.hpp, adamw and adamw_8bit.
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
