#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "trireme/files/file_system.hpp"

namespace trireme::trainer {

// What repeats a start of a run.
struct RunStart {
  std::string command;        // that started it; empty: the program has not said
  std::string configuration;  // a file for --config; likewise
  int ranks = 1;
  std::int64_t first_step = 0;
  std::map<std::string, std::string> settings;
};

// Adds a line to runs.jsonl in the folder: the command, version, machine, time and settings of this start. Writes the
// configuration to options.toml there. It is for people: where that fails the log says so, and training goes on.
void record_start(const RunStart& start, const Location& folder, FileSystem& files);

}  // namespace trireme::trainer
