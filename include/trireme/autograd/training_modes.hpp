#pragma once

#include <map>
#include <string>
#include <string_view>

namespace trireme {

// Whether `name`, of a module, parameter or buffer, is that module's own or of one within it; "" is the whole model.
bool is_within(std::string_view module, std::string_view name);

// Which modules of a model train and which are in evaluation: what batch norm normalises by, and whether dropout drops. All
// train at first.
class TrainingModes {
 public:
  void set(std::string_view module, bool training);  // of the module and all within it
  bool training(std::string_view module) const;

  // What is in evaluation: "" where all train, "evaluation" where nothing does, or "backbone in evaluation". The same for the
  // same modes.
  std::string str() const;

 private:
  std::map<std::string, bool> switches_;  // by module, where it differs from the one around it
};

}  // namespace trireme
