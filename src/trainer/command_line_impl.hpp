#pragma once

#include <CLI/CLI.hpp>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "trireme/trainer/command_line.hpp"

namespace trireme::trainer {

class CommandLine::Impl {
 public:
  explicit Impl(std::string description);

  // A value that is written as it is read.
  template <typename T>
  CLI::Option* add(const std::string& name, T& value, const std::string& text, const std::function<std::string()>& shown) {
    return own(name, app.add_option(free(name), value, text)->capture_default_str(), shown);
  }

  // One whose text is understood by `take`, which is called where the option is given.
  CLI::Option* add_text(const std::string& name, const std::string& value, const std::string& text,
                        std::function<void(const std::string&)> take);

  CLI::Option* own(const std::string& name, CLI::Option* option, const std::function<std::string()>& shown);

  std::string free(const std::string& name);            // the same, of an option that is to be added
  static std::string written(const std::string& name);  // "--batch-size"

  CLI::App app;
  std::string program;
  std::string group = "Options";
  bool of_run = false;  // what is added now
  bool print_config = false;
  bool has_length = false;  // the command line, not a file, says how long the run lasts
  DeviceOptions* device = nullptr;

  struct Text {
    CLI::Option* option;
    std::string value;
    std::function<void(const std::string&)> take;
  };
  std::deque<Text> texts;
  std::vector<std::function<void()>> after_parsing;

  struct Own {
    std::string name;
    std::function<std::string()> shown;
    std::string usual;  // shown before the options are read
    Differs differs = Differs::refused;
  };
  std::vector<Own> settings;  // of the program's own options
};

}  // namespace trireme::trainer
