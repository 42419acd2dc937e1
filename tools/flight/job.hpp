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
  vanished,  // the process is gone, and said no word
  stopped,   // the process is stopped, by SIGSTOP or a debugger
  waiting,   // for other ranks
  running,   // neither waits nor has ended
};
std::string_view name_of(RankState state);

// One rank, as its file and its process show it.
struct RankView {
  int rank = 0;
  RankState state = RankState::missing;
  std::optional<FlightFile> file;
  bool local = false;  // its process can be looked at from here
  double age = 0;      // seconds since its last sign of life
  double waited = 0;   // seconds that it has waited, or waited until its end

  const trireme::comm::FlightHeader& header() const { return file->header; }
  std::string place() const;                           // (host a, pid 123)
  const trireme::comm::FlightEntry* last() const;      // the last collective it called, else message; null: none
  const trireme::comm::FlightEntry* stuck_in() const;  // what it waits for, or waited for when it ended; null: nothing
  std::string error() const;                           // what its main threw
  std::string end_text() const;                        // how a vanished process went
};

// The ranks of one job, by rank.
struct Job {
  std::vector<RankView> ranks;
  std::vector<std::string> notes;  // files passed over, damage
  double now = 0;                  // seconds since 1970
};

// The newest job of a folder; nothing when no file can be read, then the notes say why.
std::optional<Job> read_job(const std::filesystem::path& folder, std::vector<std::string>& notes);

std::string plain(std::string_view text);                        // without what could upset a terminal
std::string plain(const char* text, std::size_t bytes);          // up to the first 0
double wall_seconds(const FlightFile& file, std::int64_t time);  // since 1970
