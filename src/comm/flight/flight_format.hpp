#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

namespace trireme::comm {

// The file of a rank's flight recorder: a header, a table of groups, and a ring of entries, with fixed sizes and this machine's
// byte order. The rank writes to a mapping of the file, so the file is complete however the rank ended.

constexpr std::array<char, 8> flight_magic = {'T', 'R', 'I', 'F', 'L', 'G', 'H', 'T'};
constexpr std::uint32_t flight_version = 1;

enum class FlightState : std::uint32_t { running, finished, failed };

struct FlightHeader {
  // Written once, before the file gets its name.
  std::array<char, 8> magic{};
  std::uint32_t version = 0;
  std::uint32_t entry_bytes = 0;
  std::uint64_t capacity = 0;    // entries of the ring
  std::uint32_t num_groups = 0;  // size of the table
  std::int32_t rank = 0;         // in the world
  std::int32_t size = 0;         // of the world
  std::int32_t process = 0;
  std::int32_t thread = 0;
  std::uint32_t reserved = 0;
  std::uint64_t process_start = 0;  // clock ticks after the boot; differs from that of a later process with the same number
  std::uint64_t machine = 0;        // this_machine()
  std::uint64_t job = 0;            // the same for all ranks of a job
  std::int64_t start_steady = 0;    // the start in nanoseconds of the steady clock, which all other times use ...
  std::int64_t start_wall = 0;      // ... and in nanoseconds since 1970
  std::array<char, 64> host{};
  std::uint64_t check = 0;  // a checksum of everything above

  // Each field is written by itself while the rank runs.
  std::uint64_t num_entries = 0;  // the number of entries so far; the ring holds the last ones
  FlightState state = FlightState::running;
  std::int32_t exit_code = 0;
  std::int64_t ended = 0;       // when main returned or threw
  std::int64_t heartbeat = 0;   // the last check of a waiting rank
  std::uint64_t waits_for = 0;  // the number of the entry for which it waits; 0: does not wait
  std::int64_t waits_since = 0;
  std::uint64_t failed_in = 0;     // the number of the first entry whose call or wait threw
  std::int32_t signal = 0;         // the signal that the process got; 0: none
  std::int32_t signalled = 0;      // 1: this rank's thread got it
  std::int32_t error_code = -1;    // an ErrorCode; -1: none, or another exception
  std::int32_t error_rank = -1;    // the rank that failed first
  std::uint64_t error_bytes = 0;   // the length of `error`, written last
  std::array<char, 3072> error{};  // the message of the exception that main threw
};

// A group with this rank.
struct FlightGroup {
  std::uint64_t id = 0;  // the same on all members; written last, 0: free
  std::int32_t size = 0;
  std::int32_t me = 0;
  std::uint64_t calls = 0;       // collectives called so far
  std::array<char, 40> label{};  // may be cut off
};

enum class FlightKind : std::uint8_t { barrier, all_reduce, reduce_scatter, all_gather, broadcast, send, receive };
constexpr std::uint8_t num_flight_kinds = 7;

enum class FlightFate : std::uint32_t { under_way, done, failed };

struct FlightEntry {
  std::uint64_t number = 0;    // counts from 1; written last, 0 while the rest changes
  std::uint64_t sequence = 0;  // counts the group's collectives from 1; 0 for messages
  std::uint64_t count = 0;
  FlightKind kind = FlightKind::barrier;
  std::uint8_t op = 0;     // a ReduceOp
  std::uint8_t dtype = 0;  // a DType
  std::uint8_t reserved = 0;
  std::uint32_t group = 0;  // place in the table
  std::int32_t peer = 0;    // rank in the group: a broadcast's root, a message's other end
  std::int32_t tag = 0;
  std::int64_t issued = 0;
  std::uint32_t check = 0;  // a checksum of the fields above and `name`
  FlightFate fate = FlightFate::under_way;
  std::int64_t started = 0;     // when all ranks had called it; 0: not yet, or the call is too small to note
  std::int64_t ended = 0;       // when this rank's part was done, or failed
  std::array<char, 56> name{};  // written by write_name()
};

static_assert(sizeof(FlightEntry) == 128 && std::is_trivially_copyable_v<FlightEntry>);
static_assert(sizeof(FlightGroup) == 64 && std::is_trivially_copyable_v<FlightGroup>);
static_assert(std::is_trivially_copyable_v<FlightHeader>);

constexpr std::size_t flight_groups_offset = 4096;
constexpr std::uint32_t flight_num_groups = 64;
constexpr std::uint64_t flight_capacity = 4096;
static_assert(sizeof(FlightHeader) <= flight_groups_offset);

constexpr std::size_t flight_entries_offset(std::uint32_t num_groups) {
  return flight_groups_offset + std::size_t{num_groups} * sizeof(FlightGroup);
}
constexpr std::size_t flight_bytes(std::uint32_t num_groups, std::uint64_t capacity) {
  return flight_entries_offset(num_groups) + static_cast<std::size_t>(capacity) * sizeof(FlightEntry);
}

class FlightCheck {
 public:
  void add(std::uint64_t word) { value_ = std::rotl((value_ ^ word) * 0x9e3779b97f4a7c15U, 29); }
  void add(std::span<const std::byte> bytes) {  // whole words
    for (std::size_t at = 0; at + sizeof(std::uint64_t) <= bytes.size(); at += sizeof(std::uint64_t)) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data() + at, sizeof(word));
      add(word);
    }
  }
  std::uint64_t value() const { return value_ ^ value_ >> 32; }

 private:
  std::uint64_t value_ = 0x7472697265'6d65U;
};

inline std::uint64_t check_of(const FlightHeader& header) {
  FlightCheck check;
  check.add({reinterpret_cast<const std::byte*>(&header), offsetof(FlightHeader, check)});
  return check.value();
}

inline std::uint32_t check_of(const FlightEntry& entry) {
  const auto* bytes = reinterpret_cast<const std::byte*>(&entry);
  FlightCheck check;
  check.add({bytes, offsetof(FlightEntry, check)});
  check.add({bytes + offsetof(FlightEntry, name), sizeof(entry.name)});
  return static_cast<std::uint32_t>(check.value());
}

}  // namespace trireme::comm
