#pragma once

#include <cstdint>
#include <deque>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cause.hpp"
#include "command.hpp"

// One start of the job and its end.
struct Attempt {
  Cause cause = Cause::finished;
  int exit_code = 0;
  std::string ending;                                      // in words
  std::optional<trireme::RunStatus> status;                // the last status that it reported, if it can be read
  bool begun = false;                                      // it did a step
  std::optional<std::uint64_t> checkpoint = std::nullopt;  // the last committed one
  std::string resume;                                      // the TRIREME_RESUME that it got
  double seconds = 0;
  std::vector<std::string> findings = {};  // of the flight recorder
  std::deque<std::string> messages;        // its last lines of stderr
};

// At which step it ended, as far as is known: "at step 12 or later"
std::string step_text(const Attempt& attempt);

struct Report {
  Command command;
  std::vector<Attempt> attempts;
  int exit_code = 0;
  std::string reason;
  std::filesystem::path flight;  // folder of the recorder's files; empty: they are not kept
};

void print(const Report& report);  // to stderr

// Writes JSON. An earlier report at the path is kept as PATH.1, PATH.2 and so on: a job that is requeued writes a new one.
void write(const Report& report, const std::filesystem::path& path);

// Writes to stderr. Errors are ignored, so that the job goes on if nobody reads it.
void tell(std::string_view text);
