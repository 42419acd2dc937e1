#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "flight_file.hpp"

enum class RankState {
  missing,   // there is no file
  finished,  // main returned
  failed,    // main threw
  vanished,  // the process is gone, and left no record of its end
  stopped,   // the process is stopped, by SIGSTOP or a debugger
  waiting,   // for other ranks
  running,   // not waiting, not ended
};
std::string_view name_of(RankState state);

// What the file and the process of one rank show.
struct RankView {
  int rank = 0;
  RankState state = RankState::missing;
  std::optional<FlightFile> file;
  bool local = false;  // its process runs on this machine
  double age = 0;      // seconds since its last sign of life
  double waited = 0;   // seconds that it has waited, or had waited at its end

  const trireme::comm::FlightHeader& header() const { return file->header; }
  std::string place() const;                           // (host a, pid 123)
  const trireme::comm::FlightEntry* last() const;      // the last collective that it called, else its last message; null: none
  const trireme::comm::FlightEntry* stuck_in() const;  // the call that it waits for, or waited for when it ended; null: none
  std::string error() const;                           // the error that its main threw
  std::string end_text() const;                        // how a vanished process ended
};

// The ranks of one job, by rank.
struct Job {
  std::vector<RankView> ranks;
  std::vector<std::string> notes;  // files that were skipped, damage
  double now = 0;                  // seconds since 1970
};

// The newest job of a folder. Returns nothing if no file can be read; then the notes say why.
std::optional<Job> read_job(const std::filesystem::path& folder, std::vector<std::string>& notes);

std::string plain(std::string_view text);                        // replaces control characters, which could confuse a terminal
std::string plain(const char* text, std::size_t bytes);          // up to the first 0
double wall_seconds(const FlightFile& file, std::int64_t time);  // since 1970
