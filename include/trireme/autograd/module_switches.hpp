#pragma once

#include <map>
#include <string>
#include <string_view>

#include "trireme/core/export.hpp"

namespace trireme TRIREME_EXPORT {

// Whether the module, parameter or buffer `name` is `module` or lies within it; "" is the whole model.
bool is_within(std::string_view module, std::string_view name);

// An on/off switch for each module of a model. All are on at first.
class ModuleSwitches {
 public:
  void set(std::string_view module, bool on);  // of the module and all modules within it
  bool is_on(std::string_view name) const;     // of a module, parameter or buffer: the innermost switch around `name` counts

 protected:
  const std::map<std::string, bool>& switches() const { return switches_; }

 private:
  std::map<std::string, bool> switches_;  // by module, if its switch differs from the switch of the module around it
};

// Which modules of a model are in training mode and which in evaluation mode, for batch norm and dropout.
class TrainingModes : public ModuleSwitches {
 public:
  // The modules in evaluation mode: "" if all train, "evaluation" if none train, or "backbone in evaluation". Equal modes give
  // equal texts.
  std::string str() const;
};

}  // namespace trireme
