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

// What a program can be told beside the options of a run. The value that is there when an option is added is its default.
//
//   std::int64_t width = 128;
//   trainer::CommandLine line("Trains a classifier on a table of numbers");
//   line.add("width", width, "units of the hidden layer");
//   return trainer::launch(argc, argv, line, {.until = Epochs{20}}, train);  // --width 256
//
// A name is written with '-' between its words; '_' is understood too, on the command line and in --config FILE (TOML:
// width = 256). --help lists all options with their defaults, --print-config writes a file that --config reads.
class CommandLine {
 public:
  explicit CommandLine(const std::string& description = {});
  ~CommandLine();
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;

  // What the value refers to must live until the options are read. A bool is switched on by --name, off by --no-name; an Amount
  // is what parse_amount reads. `differs`: what happens where a run goes on with another value.
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

  // Those of a run, and those of trireme::launch: trainer::launch() adds both.
  void add_run(Options& options);
  void add_launch(BackendKind& backend, LaunchOptions& options);

  // --device and what goes with it, for programs whose models can lie on GPUs; launch() then starts ranks with a GPU each.
  void add_device(DeviceOptions& options);
  const DeviceOptions* device() const;  // null: the program has no such options

  // Called once the options are read: for checks of several together, which throw Error.
  void after_parsing(std::function<void()> check);

  // Options that are added from now on are listed under this heading.
  void set_group(const std::string& heading);

  // Error{invalid_argument} for what can't be understood. A text, of --help, --version or --print-config, is to be printed in
  // place of training.
  std::string parse(int argc, const char* const* argv);

  std::string configuration() const;          // the options as they are, a file for --config: what --print-config writes
  bool given(const std::string& name) const;  // on the command line or in a file
  const std::string& program() const;         // its name, as it was called

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
