#include "trireme/autograd/lora_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "trireme/core/error.hpp"

namespace trireme {
namespace {

bool names_layer(std::string_view target, std::string_view name) {
  if (!name.ends_with(target)) return false;
  return name.size() == target.size() || name[name.size() - target.size() - 1] == '.';
}

}  // namespace

double LoraOptions::scale() const { return alpha / (rank_stabilized ? std::sqrt(static_cast<double>(rank)) : rank); }

bool LoraOptions::is_target(std::string_view name) const {
  return std::ranges::any_of(targets,
                             [&](const std::string& target) { return target == all_linear || names_layer(target, name); });
}

void LoraOptions::check() const {
  require(rank > 0, "the rank of LoRA is above 0, got {}", rank);
  require(std::isfinite(alpha), "alpha of LoRA is a finite number, got {}", alpha);
  require(dropout >= 0 && dropout < 1, "the dropout of LoRA lies in [0, 1), got {}", dropout);
  require(!targets.empty(), "LoRA has no targets: name linear layers, as q_proj and v_proj, or {}", all_linear);
  require(std::ranges::find(targets, "") == targets.end(), "a target of LoRA is an empty name");
  require(targets.size() == 1 || std::ranges::find(targets, all_linear) == targets.end(),
          "LoRA has the targets {}: {} can't be combined with others", fmt::join(targets, ", "), all_linear);
}

void require_known_targets(const LoraOptions& options, const std::vector<TargetableLayer>& layers) {
  std::set<std::string> last_names;
  for (const TargetableLayer& layer : layers) {
    for (const TargetableLayer::Part& part : layer.parts) last_names.insert(part.name.substr(part.name.rfind('.') + 1));
  }
  require(!last_names.empty(), "LoRA has the targets {}, but this model has no linear layer that it can adapt",
          fmt::join(options.targets, ", "));
  for (const std::string& target : options.targets) {
    const bool is_known = std::ranges::any_of(layers, [&](const TargetableLayer& layer) {
      return std::ranges::any_of(layer.parts, [&](const TargetableLayer::Part& part) {
        return target == LoraOptions::all_linear || names_layer(target, part.name);
      });
    });
    require(is_known, "LoRA's target {} is no linear layer of this model; it has {}, or {}", target,
            fmt::join(last_names, ", "), LoraOptions::all_linear);
  }
}

}  // namespace trireme
