#include "trireme/optim/parameter_rules.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <cmath>

#include "trireme/core/error.hpp"

namespace trireme::optim {
namespace {

bool matches(const ParameterGroup& group, const std::string& name) {
  return fnmatch(group.pattern.c_str(), name.c_str(), FNM_NOESCAPE) == 0;
}

bool is_decay(double beta) { return beta >= 0 && beta < 1; }

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
    require((!group.beta1 || rules.beta1) && (!group.beta2 || rules.beta2),
            "the parameter group \"{}\" has betas of its own, and this optimizer has none", group.pattern);
    require(fits(group.clip_norm.value_or(0)) && fits(group.clip_value.value_or(0)),
            "the clip_norm and clip_value of the parameter group \"{}\" are finite and 0 or more, got {} and {}", group.pattern,
            group.clip_norm.value_or(0), group.clip_value.value_or(0));
    require(!group.full_precision || rules.quantizes,
            "the parameter group \"{}\" sets full_precision, which is only for AdamW8bit: all state of this optimizer has full "
            "precision",
            group.pattern);
    require(is_decay(group.beta1.value_or(0)) && is_decay(group.beta2.value_or(0)),
            "the betas of the parameter group \"{}\" lie in [0, 1), got {} and {}", group.pattern, group.beta1.value_or(0),
            group.beta2.value_or(0));
    require(std::ranges::any_of(names, [&](const std::string& name) { return matches(group, name); }),
            "the parameter group \"{}\" matches none of the model's {} parameters; the first is called {}", group.pattern,
            names.size(), names.empty() ? "" : names.front());
  }
}

}  // namespace

void require_betas(std::string_view optimizer, double beta1, double beta2) {
  require(is_decay(beta1) && is_decay(beta2), "{}'s betas lie in [0, 1), got {} and {}", optimizer, beta1, beta2);
}

std::string to_text(const ParameterGroup& group) {
  std::string text = fmt::format("learning rate times {}, weight decay {}, {}", group.learning_rate_factor,
                                 group.weight_decay ? fmt::format("{}", *group.weight_decay) : "as the others",
                                 group.adapts ? "adapts" : "does not adapt");
  if (group.clip_norm) text += fmt::format(", clip_norm {}", *group.clip_norm);
  if (group.clip_value) text += fmt::format(", clip_value {}", *group.clip_value);
  if (group.full_precision) text += ", in full precision";
  if (group.schedule) text += ", a schedule";
  if (group.beta1) text += fmt::format(", beta1 {}", *group.beta1);
  if (group.beta2) text += fmt::format(", beta2 {}", *group.beta2);
  return text;
}

double learning_rate_factor(const ParameterRules& rules, const ResolvedRule& rule, std::int64_t step) {
  if (rule.schedule < 0) return rule.learning_rate_factor;
  const ParameterGroup& group = rules.groups[static_cast<std::size_t>(rule.schedule)];
  const double factor = group.schedule(step);
  require(std::isfinite(factor) && factor >= 0,
          "the schedule of the parameter group \"{}\" gives {} in step {}: factors are finite and 0 or more", group.pattern,
          factor, step);
  return rule.learning_rate_factor * factor;
}

std::vector<ResolvedRule> resolve(const ParameterRules& rules, FlatStore& store) {
  check(rules, store);
  std::vector<ResolvedRule> resolved;
  for (int index = 0; index < store.num_parameters(); ++index) {
    const ParameterInfo& parameter = store.parameter(index);
    ResolvedRule rule{.beta1 = rules.beta1.value_or(0), .beta2 = rules.beta2.value_or(0)};
    if (rules.decay == Decay::all || parameter.shape.size() >= 2) rule.weight_decay = rules.weight_decay;
    const auto group = std::ranges::find_if(rules.groups, [&](const auto& any) { return matches(any, parameter.name); });
    if (group != rules.groups.end()) {
      rule.learning_rate_factor = group->learning_rate_factor;
      if (group->schedule) rule.schedule = static_cast<int>(group - rules.groups.begin());
      rule.weight_decay = group->weight_decay.value_or(rule.weight_decay);
      rule.adapts = group->adapts;
      rule.full_precision = group->full_precision;
      rule.clip_norm = group->clip_norm;
      rule.clip_value = group->clip_value;
      if (group->clip_norm) rule.clips_with = static_cast<int>(group - rules.groups.begin()) + 1;
      rule.beta1 = group->beta1.value_or(rule.beta1);
      rule.beta2 = group->beta2.value_or(rule.beta2);
    }
    resolved.push_back(rule);
  }
  return resolved;
}

}  // namespace trireme::optim
