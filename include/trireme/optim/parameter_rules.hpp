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
  matrices,  // on those of two or more dims: not on biases and norms
};

// Parameters that go their own way, by name.
struct ParameterGroup {
  std::string pattern;  // * stands for any characters, ? for one, [ab] for one of these: "*.bias", "h.*.ln_*.weight"
  double learning_rate_factor = 1;
  std::optional<double> weight_decay = {};  // instead of the optimizer's, whatever its Decay says
  bool adapts = true;                       // LAMB and LARS: false takes the learning rate as it is; Muon: AdamW's step
  std::optional<double> beta1 = {};         // instead of the optimizer's, where it has betas
  std::optional<double> beta2 = {};
  // Largest L2 norm of this group's gradients by themselves, which then do not count for UpdateOptions::clip_norm; 0: no limit.
  std::optional<double> clip_norm = {};
  std::optional<double> clip_value = {};  // instead of UpdateOptions::clip_value; 0: no limit
  bool full_precision = false;            // AdamW8bit: moments in the type of the weights
  LearningRate schedule = {};  // one more factor of the learning rate, by the number of DataParallel::begin; not in a StepGraph
};

std::string to_text(const ParameterGroup& group);  // all but its pattern: for a comparison between ranks

// How an optimizer treats the parameters. A parameter belongs to the first group whose pattern matches its name.
struct ParameterRules {
  double learning_rate = 1e-3;
  double weight_decay = 0;
  Decay decay = Decay::all;
  std::vector<ParameterGroup> groups = {};
  std::optional<double> beta1 = {};  // of an optimizer that has betas: decays of its moments
  std::optional<double> beta2 = {};
  bool quantizes = false;  // of an optimizer that keeps some parameters' state in few bits: groups may have full_precision
};

// What the rules say of one parameter.
struct ResolvedRule {
  double learning_rate_factor = 1;
  int schedule = -1;  // that of this group; below 0: none
  double weight_decay = 0;
  bool adapts = true;
  bool full_precision = false;
  int clips_with = 0;  // parameters with the same number are clipped by one norm; 0: those without a norm of their own
  std::optional<double> clip_norm = {};
  std::optional<double> clip_value = {};
  double beta1 = 0;  // of an optimizer that has betas
  double beta2 = 0;

  bool operator==(const ResolvedRule&) const = default;
};

// Of the parameters with this rule in a step, of which a schedule may be a function.
double learning_rate_factor(const ParameterRules& rules, const ResolvedRule& rule, std::int64_t step);

// An error unless both betas of the optimizer, as "Adam", lie in [0, 1).
void require_betas(std::string_view optimizer, double beta1, double beta2);

// By parameter index. A pattern that matches no name is an error.
std::vector<ResolvedRule> resolve(const ParameterRules& rules, FlatStore& store);

}  // namespace optim
}  // namespace trireme
