#pragma once

#include <CLI/CLI.hpp>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "trainer/option_file.hpp"
#include "trainer/option_rows.hpp"
#include "trireme/core/error.hpp"
#include "trireme/trainer/command_line.hpp"

namespace trireme::trainer {

class CommandLine::Impl {
 public:
  explicit Impl(std::string description);

  CLI::Option* add(const std::string& name, const OptionValue& value, const std::string& text);
  CLI::Option* add_text(const std::string& name, const Words& words, const std::string& text);
  // Adds an option of the program, which becomes a setting in checkpoints.
  CLI::Option* add_own(const std::string& name, const OptionValue& value, const std::string& text, Differs differs);

  // Adds the options of a table under this heading; the target must live until the options are read.
  template <typename Target>
  void add_rows(const char* heading, std::span<const OptionRow<Target>> rows, Target& target) {
    group = heading;
    for (const OptionRow<Target>& row : rows) {
      if (row.name == nullptr || (row.yields && app.get_option_no_throw(written(row.name)) != nullptr)) continue;
      CLI::Option* option = add(row.name, row.value(target), row.text);
      if (row.instead_of != nullptr) exclude_others(option, row.name, row.instead_of);
      if (row.check == nullptr) continue;
      after_parsing.push_back([this, &row, &target] { check_named(row.name, [&] { row.check(target); }); });
    }
  }

  // Makes `option` and the others for `instead_of` exclude each other: the command line takes one of them, and then a file's
  // are ignored.
  void exclude_others(CLI::Option* option, const std::string& name, const std::string& instead_of);
  const std::string& first_name_of(const std::string& name) const;  // the option that it replaces, or its own name

  void check_named(const std::string& name, const std::function<void()>& check) const;  // adds the option's name to an error

  std::string free(const std::string& name) const;      // written(name); throws if it is taken or not valid
  static std::string written(const std::string& name);  // "--batch-size"

  // Adds the line of the --config file to an error, if its name (or else its message) begins with an option that the file gave.
  ErrorFields located(ErrorFields fields) const;

  CLI::App app;
  std::shared_ptr<OptionFile> file;  // for --config
  std::set<std::string> said;        // the names on the command line
  std::string program;
  std::string group = "Options";
  bool print_config = false;
  std::map<std::string, std::string> same;  // by option: the one that it replaces, as "steps" replaces "until"
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
    std::string usual;  // the default: the value before the options are read
    Differs differs = Differs::refused;
  };
  std::vector<Own> settings;  // of the program's own options
};

}  // namespace trireme::trainer
