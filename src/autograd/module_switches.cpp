#include "trireme/autograd/module_switches.hpp"

namespace trireme {

bool is_within(std::string_view module, std::string_view name) {
  if (module.empty()) return true;
  return name.starts_with(module) && (name.size() == module.size() || name[module.size()] == '.');
}

void ModuleSwitches::set(std::string_view module, bool on) {
  std::erase_if(switches_, [&](const auto& entry) { return is_within(module, entry.first); });
  if (is_on(module) != on) switches_.emplace(module, on);
}

bool ModuleSwitches::is_on(std::string_view name) const {
  bool on = true;
  std::size_t longest = 0;
  for (const auto& [module, is_on_there] : switches_) {
    if (module.size() < longest || !is_within(module, name)) continue;
    longest = module.size();
    on = is_on_there;
  }
  return on;
}

std::string TrainingModes::str() const {
  std::string text;
  for (const auto& [name, on] : switches()) {
    if (!text.empty()) text += ", ";
    if (!name.empty()) text += name + " in ";
    text += on ? "training" : "evaluation";
  }
  return text;
}

}  // namespace trireme
