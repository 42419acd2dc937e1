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

// One start of the job, as it ended.
struct Attempt {
  Cause cause = Cause::finished;
  int exit_code = 0;
  std::string ending;                                      // in words
  std::optional<trireme::RunStatus> status;                // the last that it reported, if it can be read
  bool begun = false;                                      // it came to its first step
  std::optional<std::uint64_t> checkpoint = std::nullopt;  // the last committed one
  std::string resume;                                      // TRIREME_RESUME that it was given
  double seconds = 0;
  std::vector<std::string> findings = {};  // of the flight recorder
  std::deque<std::string> messages;        // its last lines on stderr
};

// At which step it ended, as far as it said: "after step 12 or later"
std::string step_text(const Attempt& attempt);

struct Report {
  Command command;
  std::vector<Attempt> attempts;
  int exit_code = 0;
  std::string reason;
  std::filesystem::path flight;  // the recorder's files; empty: gone
};

void print(const Report& report);  // on stderr

// As JSON. What the path named before stays, as PATH.1, PATH.2 and so on: a job that is put back into a queue begins anew.
void write(const Report& report, const std::filesystem::path& path);

// On stderr. Who has stopped reading ends no job.
void tell(std::string_view text);
