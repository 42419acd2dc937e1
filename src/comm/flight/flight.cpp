#include "comm/flight/flight.hpp"

#include <chrono>
#include <cstdlib>
#include <random>
#include <string>

#include "trireme/core/error.hpp"

namespace trireme::comm {
namespace {

std::string folder_of(const std::string& directory) {
  if (!directory.empty()) return directory;
  const char* variable = std::getenv("TRIREME_FLIGHT_DIR");
  return variable == nullptr ? "" : variable;
}

std::uint64_t new_job() {
  std::random_device random;
  return std::uint64_t{random()} << 32 | random();
}

// The text of a failure to make the file: "<errno> <path>".
std::string describe(const Error& error) { return std::to_string(error.fields().error_number) + " " + error.fields().path; }

[[noreturn]] void throw_failure(const std::string& text, int rank) {
  const std::size_t space = text.find(' ');
  throw flight_failure(text.substr(space + 1), std::stoi(text.substr(0, space)), rank);
}

}  // namespace

std::vector<std::shared_ptr<FlightRecorder>> open_flights(const std::string& directory, int ranks) {
  std::vector<std::shared_ptr<FlightRecorder>> flights(static_cast<std::size_t>(ranks));
  const std::string folder = folder_of(directory);
  if (folder.empty()) return flights;
  const std::uint64_t job = new_job();
  for (int rank = 0; rank < ranks; ++rank) {
    flights[static_cast<std::size_t>(rank)] =
        std::make_shared<FlightRecorder>(folder, FlightOwner{.rank = rank, .size = ranks, .job = job});
  }
  return flights;
}

std::shared_ptr<FlightRecorder> open_flight(const std::string& directory, int rank, int ranks, const Exchange& exchange) {
  const std::vector<std::string> folders = exchange(folder_of(directory));
  std::string folder;
  for (const std::string& one : folders) {
    if (folder.empty()) folder = one;
  }
  if (folder.empty()) return nullptr;
  const std::uint64_t job = std::stoull(exchange(std::to_string(new_job())).front());
  std::shared_ptr<FlightRecorder> flight;
  std::string failure;
  try {
    flight = std::make_shared<FlightRecorder>(folder, FlightOwner{.rank = rank, .size = ranks, .job = job});
  } catch (const Error& error) {
    failure = describe(error);
  }
  const std::vector<std::string> failures = exchange(failure);
  for (int other = 0; other < ranks; ++other) {
    const std::string& text = failures[static_cast<std::size_t>(other)];
    if (!text.empty()) throw_failure(text, other);
  }
  return flight;
}

}  // namespace trireme::comm
