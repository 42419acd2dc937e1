#pragma once

#include <CLI/CLI.hpp>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "trainer/number_option.hpp"
#include "trainer/option_file.hpp"
#include "trireme/core/error.hpp"
#include "trireme/trainer/command_line.hpp"

namespace trireme::trainer {

class CommandLine::Impl {
 public:
  explicit Impl(std::string description);

  template <typename T>
  CLI::Option* add_number(const std::string& name, T& value, const std::string& text) {
    return own(name, trireme::add_number(app, free(name), value, text), [&value] { return fmt::format("{}", value); });
  }
  CLI::Option* add_string(const std::string& name, std::string& value, const std::string& text);

  // One whose text is understood by `take`, which is called where the option is given.
  CLI::Option* add_text(const std::string& name, const std::string& value, const std::string& text,
                        std::function<void(const std::string&)> take);

  CLI::Option* own(const std::string& name, CLI::Option* option, const std::function<std::string()>& shown);

  std::string free(const std::string& name);            // the same, of an option that is to be added
  static std::string written(const std::string& name);  // "--batch-size"

  // With the line of --config FILE that gave the option which the error's name, or else its message, begins with.
  ErrorFields located(ErrorFields fields) const;

  CLI::App app;
  std::shared_ptr<OptionFile> file;  // that of --config
  std::set<std::string> said;        // names on the command line
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
