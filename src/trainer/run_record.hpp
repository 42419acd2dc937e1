#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "trireme/files/file_system.hpp"

namespace trireme::trainer {

// A start of a run, as it is recorded.
struct RunStart {
  std::string command;        // the command that repeats it; empty: unknown
  std::string configuration;  // its options as a file for --config; empty: unknown
  int ranks = 1;
  std::int64_t first_step = 0;
  std::map<std::string, std::string> settings;
};

// Adds a line to runs.jsonl in the folder, with the command, version, machine, time and settings of this start, and writes the
// configuration to options.toml. If writing fails, it logs a warning and training goes on.
void record_start(const RunStart& start, const Location& folder, FileSystem& files);

}  // namespace trireme::trainer
