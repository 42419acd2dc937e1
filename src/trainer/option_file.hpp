#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <istream>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::trainer {

std::string with_hyphens(std::string name);  // '-' for '_'

// Reads a file for --config: a line of TOML, NAME = VALUE, per option; a text without spaces needs no quotes. Lists, sections
// and unknown names throw an Error with file and line.
class OptionFile final : public CLI::Config {
 public:
  // `is_passed_over`: true for options that the command line has.
  OptionFile(const CLI::App& app, std::function<bool(const std::string& name)> is_passed_over)
      : app_(app), is_passed_over_(std::move(is_passed_over)) {}

  std::vector<CLI::ConfigItem> from_config(std::istream& file) const override;
  // A file with the options that were given.
  std::string to_config(const CLI::App* app, bool default_also, bool write_description, std::string prefix) const override;

  std::string path() const;
  int line_of(const std::string& name) const;  // the line of an option taken from the file; 0: it was not

 private:
  [[noreturn]] void refuse(int line, const std::string& what) const;
  std::string value_of(int line, std::string_view text) const;
  void check_flag(int line, const std::string& name, const std::string& value) const;

  const CLI::App& app_;
  std::function<bool(const std::string& name)> is_passed_over_;
  mutable std::map<std::string, int> lines_;  // CLI11 reads files by a const function
};

}  // namespace trireme::trainer
