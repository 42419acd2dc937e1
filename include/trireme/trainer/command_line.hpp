#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trireme/comm/launch/launch.hpp"
#include "trireme/core/export.hpp"
#include "trireme/core/units.hpp"
#include "trireme/trainer/options.hpp"

namespace trireme TRIREME_EXPORT {
namespace trainer {

// The command line of a program, with the program's own options and the options of a run. The default is the value that a
// variable has when its option is added.
//
//   std::int64_t width = 128;
//   trainer::CommandLine line("Trains a classifier on a table of numbers");
//   line.add("width", width, "units of the hidden layer");
//   return trainer::launch(argc, argv, line, {.until = Epochs{20}}, train);  // --width 256
//
// The command line and --config FILE (TOML: width = 256) accept '-' and '_' between the words of a name. --help lists all
// options with their defaults; --print-config writes a file that --config reads.
class CommandLine {
 public:
  explicit CommandLine(const std::string& description = {});
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  // `value` must live until the options are read. A bool is switched on by --name and off by --no-name; parse_amount reads an
  // Amount. `differs` says what happens if a resumed run has another value than its checkpoint.
  void add(const std::string& name, bool& value, const std::string& text, Differs differs = Differs::refused);
  void add(const std::string& name, int& value, const std::string& text, Differs differs = Differs::refused);
  void add(const std::string& name, std::int64_t& value, const std::string& text, Differs differs = Differs::refused);
  void add(const std::string& name, std::uint64_t& value, const std::string& text, Differs differs = Differs::refused);
  void add(const std::string& name, double& value, const std::string& text, Differs differs = Differs::refused);
  void add(const std::string& name, std::optional<double>& value, const std::string& text, Differs differs = Differs::refused);
  void add(const std::string& name, std::string& value, const std::string& text, Differs differs = Differs::refused);
  void add(const std::string& name, Amount& value, const std::string& text, Differs differs = Differs::refused);
  void add(const std::string& name, std::string& value, const std::vector<std::string>& choices, const std::string& text,
           Differs differs = Differs::refused);

  // The next two functions add the options of a run and the options of trireme::launch; trainer::launch() calls both.
  void add_run(Options& options);
  void add_launch(BackendKind& backend, LaunchOptions& options);

  // Adds --device and related options, for programs that can train on GPUs; launch() then starts each rank with a GPU.
  void add_device(DeviceOptions& options);
  const DeviceOptions* device() const;  // null: the program has no such options

  // Calls `check` after all options are read, to check several options together; `check` throws Error for a mistake.
  void after_parsing(std::function<void()> check);

  // In --help, the options that are added after this call are listed under `heading`.
  void set_group(const std::string& heading);

  // Reads the options; throws Error{invalid_argument} for a mistake. Returns the text of --help, --version or --print-config,
  // which the program prints instead of training. Otherwise returns an empty text.
  std::string parse(int argc, const char* const* argv);

  std::string configuration() const;          // the text that --print-config prints: the given options as a file for --config
  bool given(const std::string& name) const;  // whether the command line or the file has this option
  const std::string& program() const;         // the file name of the program, from argv[0]

  struct Setting {
    std::string name;
    std::string value;
    std::string usual;  // the default
    Differs differs;
  };
  std::vector<Setting> settings() const;  // the program's own options

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace trainer
}  // namespace trireme
