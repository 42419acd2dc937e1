#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "comm/calls/call.hpp"
#include "comm/calls/members.hpp"
#include "comm/flight/flight_format.hpp"
#include "trireme/core/error.hpp"

namespace trireme::comm {

// Who records: the same `job` for all ranks of a launch.
struct FlightOwner {
  int rank = 0;
  int size = 1;
  std::uint64_t job = 0;
};

// How a rank's main ended badly.
struct FlightFailure {
  int exit_code = 1;
  int error_code = -1;
  int rank = -1;
  std::string_view text;
};

// What a group has told its rank's recorder.
struct RecordedGroup {
  bool joined = false;
  std::uint32_t place = 0;
  std::uint64_t calls = 0;
};

// Writes one rank's flight file, on that rank's thread. Recording is stores and one reading of the clock: nothing is allocated
// after the first call of a group, and the system is not asked.
class FlightRecorder {
 public:
  using Clock = std::chrono::steady_clock;

  // `folder`/rank-<rank>.flight, in the place of an older one; makes the folder where there is none.
  FlightRecorder(const std::filesystem::path& folder, const FlightOwner& owner);
  ~FlightRecorder();
  FlightRecorder(const FlightRecorder&) = delete;
  FlightRecorder& operator=(const FlightRecorder&) = delete;

  void enter_thread();  // the rank runs on this thread

  void join(RecordedGroup& group, const Members& members);  // before its first call

  // The number of the new entry, for the calls below; these pass over 0 and entries that the ring has lost.
  std::uint64_t issue(RecordedGroup& group, const Members& members, const trireme::Call& call);
  void start(std::uint64_t number);  // worth its reading of the clock only for what takes long
  void finish(std::uint64_t number);
  void fail(std::uint64_t number);

  void begin_wait(std::uint64_t number, Clock::time_point now);
  void beat(Clock::time_point now);
  void end_wait();

  void end(int exit_code);  // main returned
  void end(const FlightFailure& failure);

  FlightHeader& header() { return *header_; }

 private:
  FlightEntry* find(std::uint64_t number);
  std::uint64_t write(RecordedGroup& group, const Members& members, FlightEntry entry, std::string_view name);
  std::uint32_t place_of(const Members& members);

  void* memory_ = nullptr;
  FlightHeader* header_ = nullptr;
  FlightGroup* groups_ = nullptr;
  FlightEntry* entries_ = nullptr;
  std::uint64_t num_entries_ = 0;
  std::uint32_t num_groups_ = 0;
  std::map<std::uint64_t, std::uint64_t> namesakes_;  // groups of equal label and members so far
};

Error flight_failure(const std::string& path, int error_number, int rank);  // the file can't be made

}  // namespace trireme::comm
