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
  // One of the program: a setting of its checkpoints.
  CLI::Option* add_own(const std::string& name, const OptionValue& value, const std::string& text, Differs differs);

  // The options of a table, under this heading; the target must live until the options are read.
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

  // Of the options that say the same in different words the command line takes one, and a file's are passed over where the
  // command line has one.
  void exclude_others(CLI::Option* option, const std::string& name, const std::string& instead_of);
  const std::string& first_name_of(const std::string& name) const;  // of those options

  void check_named(const std::string& name, const std::function<void()>& check) const;  // an error names what was given

  std::string free(const std::string& name) const;      // the same, of an option that is to be added
  static std::string written(const std::string& name);  // "--batch-size"

  // With the line of --config FILE that gave the option which the error's name, or else its message, begins with.
  ErrorFields located(ErrorFields fields) const;

  CLI::App app;
  std::shared_ptr<OptionFile> file;  // that of --config
  std::set<std::string> said;        // names on the command line
  std::string program;
  std::string group = "Options";
  bool print_config = false;
  std::map<std::string, std::string> same;  // of an option that says in other words what another one says: that one
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
