#include "trireme/optim/parameter_rules.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <cmath>

#include "trireme/core/error.hpp"

namespace trireme::optim {
namespace {

bool matches(const ParameterGroup& group, const std::string& name) {
  return fnmatch(group.pattern.c_str(), name.c_str(), FNM_NOESCAPE) == 0;
}

void check(const ParameterRules& rules, const FlatStore& store) {
  const std::vector<std::string> names = store.all_names();
  const auto fits = [](double value) { return std::isfinite(value) && value >= 0; };
  require(fits(rules.learning_rate) && fits(rules.weight_decay),
          "an optimizer's learning_rate and weight_decay are finite and 0 or more, got {} and {}", rules.learning_rate,
          rules.weight_decay);
  for (const ParameterGroup& group : rules.groups) {
    require(fits(group.learning_rate_factor) && fits(group.weight_decay.value_or(0)),
            "the learning_rate_factor and weight_decay of the parameter group \"{}\" are finite and 0 or more, got {} and {}",
            group.pattern, group.learning_rate_factor, group.weight_decay.value_or(0));
    require(std::ranges::any_of(names, [&](const std::string& name) { return matches(group, name); }),
            "the parameter group \"{}\" matches none of the model's {} parameters; the first is called {}", group.pattern,
            names.size(), names.empty() ? "" : names.front());
  }
}

}  // namespace

std::vector<ResolvedRule> resolve(const ParameterRules& rules, FlatStore& store) {
  check(rules, store);
  std::vector<ResolvedRule> resolved;
  for (int index = 0; index < store.num_parameters(); ++index) {
    const ParameterInfo& parameter = store.parameter(index);
    ResolvedRule rule;
    if (rules.decay == Decay::all || parameter.shape.size() >= 2) rule.weight_decay = rules.weight_decay;
    const auto group = std::ranges::find_if(rules.groups, [&](const auto& any) { return matches(any, parameter.name); });
    if (group != rules.groups.end()) {
      rule.learning_rate_factor = group->learning_rate_factor;
      rule.weight_decay = group->weight_decay.value_or(rule.weight_decay);
      rule.adapts = group->adapts;
    }
    resolved.push_back(rule);
  }
  return resolved;
}

}  // namespace trireme::optim
