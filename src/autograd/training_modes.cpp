#include "trireme/autograd/training_modes.hpp"

namespace trireme {

bool is_within(std::string_view module, std::string_view name) {
  if (module.empty()) return true;
  return name.starts_with(module) && (name.size() == module.size() || name[module.size()] == '.');
}

void TrainingModes::set(std::string_view module, bool training) {
  std::erase_if(switches_, [&](const auto& entry) { return is_within(module, entry.first); });
  if (this->training(module) != training) switches_.emplace(module, training);
}

// The innermost switch around the module counts.
bool TrainingModes::training(std::string_view module) const {
  bool training = true;
  std::size_t longest = 0;
  for (const auto& [name, on] : switches_) {
    if (name.size() < longest || !is_within(name, module)) continue;
    longest = name.size();
    training = on;
  }
  return training;
}

std::string TrainingModes::str() const {
  std::string text;
  for (const auto& [name, on] : switches_) {
    if (!text.empty()) text += ", ";
    if (!name.empty()) text += name + " in ";
    text += on ? "training" : "evaluation";
  }
  return text;
}

}  // namespace trireme
