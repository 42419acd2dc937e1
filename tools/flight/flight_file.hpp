#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "comm/flight/flight_format.hpp"

// One rank's recording, as far as it can be believed.
struct FlightFile {
  std::filesystem::path path;
  trireme::comm::FlightHeader header;
  std::vector<trireme::comm::FlightGroup> groups;   // by their place
  std::vector<trireme::comm::FlightEntry> entries;  // the last ones, in their order
  std::size_t num_damaged = 0;                      // entries that were left out

  const trireme::comm::FlightEntry* find(std::uint64_t number) const;  // null: 0, or not there any more
};

// Throws trireme::Error with the path for what is no such file, or a damaged one.
FlightFile read_flight_file(const std::filesystem::path& path);
