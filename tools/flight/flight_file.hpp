#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "comm/flight/flight_format.hpp"

// The recording of one rank, without damaged entries.
struct FlightFile {
  std::filesystem::path path;
  trireme::comm::FlightHeader header;
  std::vector<trireme::comm::FlightGroup> groups;   // FlightEntry::group is an index into it
  std::vector<trireme::comm::FlightEntry> entries;  // the last ones, in order
  std::size_t num_damaged = 0;                      // entries that were left out

  const trireme::comm::FlightEntry* find(
      std::uint64_t number) const;  // null: the number is 0, or the entry has been overwritten
};

// Throws trireme::Error with the path if the file is not a flight recorder's, or is damaged.
FlightFile read_flight_file(const std::filesystem::path& path);
