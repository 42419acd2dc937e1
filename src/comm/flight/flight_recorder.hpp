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

// The rank that records; `job` is the same for all ranks of a launch.
struct FlightOwner {
  int rank = 0;
  int size = 1;
  std::uint64_t job = 0;
};

// The failure of a rank's main.
struct FlightFailure {
  int exit_code = 1;
  int error_code = -1;
  int rank = -1;
  std::string_view text;
};

// What the recorder keeps of a group.
struct RecordedGroup {
  bool joined = false;
  std::uint32_t place = 0;
  std::uint64_t calls = 0;
};

// Writes a rank's flight file, on that rank's thread. Recording a call takes only stores and one reading of the clock, without
// system calls or allocations after the first call of a group.
class FlightRecorder {
 public:
  using Clock = std::chrono::steady_clock;

  // Writes `folder`/rank-<rank>.flight and replaces an older file; makes the folder if needed.
  FlightRecorder(const std::filesystem::path& folder, const FlightOwner& owner);
  ~FlightRecorder();
  FlightRecorder(const FlightRecorder&) = delete;
  FlightRecorder& operator=(const FlightRecorder&) = delete;

  void enter_thread();  // call it on the rank's thread, if that is another one than the constructor's

  void join(RecordedGroup& group, const Members& members);  // before its first call

  // Returns the number of the new entry, for the calls below. These ignore 0 and entries that the ring no longer holds.
  std::uint64_t issue(RecordedGroup& group, const Members& members, const trireme::Call& call);
  void start(std::uint64_t number);  // reads the clock, so only for calls that take long
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
  std::map<std::uint64_t, std::uint64_t> namesakes_;  // the number of groups with the same label and members
};

Error flight_failure(const std::string& path, int error_number, int rank);  // for a file that can't be made

}  // namespace trireme::comm
