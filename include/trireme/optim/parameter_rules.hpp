#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trireme/autograd/flat_store.hpp"
#include "trireme/core/export.hpp"
#include "trireme/optim/learning_rate.hpp"

namespace trireme TRIREME_EXPORT {
namespace optim {

enum class Decay : std::uint8_t {
  all,       // weight decay on every parameter
  matrices,  // only on parameters of two or more dims: not on biases and norms
};

// Options for the parameters whose names match a pattern.
struct ParameterGroup {
  std::string pattern;  // * stands for any characters, ? for one, [ab] for one of these: "*.bias", "h.*.ln_*.weight"
  double learning_rate_factor = 1;
  std::optional<double> weight_decay = {};  // instead of the optimizer's, and regardless of Decay
  bool adapts = true;  // false: LAMB and LARS do not scale the rate, Adafactor's steps are absolute, Muon updates as AdamW
  std::optional<double> beta1 = {};  // instead of the optimizer's beta1, if it has betas
  std::optional<double> beta2 = {};
  // Largest L2 norm of this group's gradients; 0: no limit. If set, these gradients do not count for UpdateOptions::clip_norm.
  std::optional<double> clip_norm = {};
  std::optional<double> clip_value = {};  // instead of UpdateOptions::clip_value; 0: no limit
  bool full_precision = false;            // AdamW8bit: moments in the type of the weights
  // A further factor on the learning rate, by the step's number in DataParallel::begin; not for a StepGraph.
  LearningRate schedule = {};
};

std::string to_text(const ParameterGroup& group);  // everything but the pattern, to compare ranks

// How an optimizer treats the parameters. A parameter belongs to the first group whose pattern matches its name.
struct ParameterRules {
  double learning_rate = 1e-3;
  double weight_decay = 0;
  Decay decay = Decay::all;
  std::vector<ParameterGroup> groups = {};
  std::optional<double> beta1 = {};  // for an optimizer with betas: decays of its moments
  std::optional<double> beta2 = {};
  bool quantizes = false;  // the optimizer keeps state in few bits: groups may set full_precision
};

// The rules for one parameter.
struct ResolvedRule {
  double learning_rate_factor = 1;
  int schedule = -1;  // index of the group whose schedule applies; below 0: none
  double weight_decay = 0;
  bool adapts = true;
  bool full_precision = false;
  int clips_with = 0;  // parameters with the same number share one norm; 0: not clipped separately
  std::optional<double> clip_norm = {};
  std::optional<double> clip_value = {};
  double beta1 = 0;  // for an optimizer with betas
  double beta2 = 0;

  bool operator==(const ResolvedRule&) const = default;
};

// The factor on the learning rate of parameters with this rule in step `step`, including the rule's schedule.
double learning_rate_factor(const ParameterRules& rules, const ResolvedRule& rule, std::int64_t step);

// Throws unless both betas lie in [0, 1). optimizer: the name for the message, such as "Adam".
void require_betas(std::string_view optimizer, double beta1, double beta2);

// The rules of all parameters, by index. A pattern that matches no name is an error.
std::vector<ResolvedRule> resolve(const ParameterRules& rules, FlatStore& store);

}  // namespace optim
}  // namespace trireme
