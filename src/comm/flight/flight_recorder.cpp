#include "comm/flight/flight_recorder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <functional>
#include <new>
#include <utility>

#include "comm/flight/flight_signals.hpp"
#include "core/process.hpp"
#include "trireme/core/error.hpp"
#include "trireme/files/file.hpp"

namespace trireme::comm {
namespace {

constexpr std::size_t file_bytes = flight_bytes(flight_num_groups, flight_capacity);

// issue() and trireme-flight convert one to the other.
static_assert(static_cast<int>(CallKind::barrier) == static_cast<int>(FlightKind::barrier) &&
              static_cast<int>(CallKind::all_reduce) == static_cast<int>(FlightKind::all_reduce) &&
              static_cast<int>(CallKind::reduce_scatter) == static_cast<int>(FlightKind::reduce_scatter) &&
              static_cast<int>(CallKind::all_gather) == static_cast<int>(FlightKind::all_gather) &&
              static_cast<int>(CallKind::broadcast) == static_cast<int>(FlightKind::broadcast) &&
              static_cast<int>(CallKind::send) == static_cast<int>(FlightKind::send) &&
              static_cast<int>(CallKind::receive) == static_cast<int>(FlightKind::receive));

template <typename T>
void store(T& word, T value) {
  std::atomic_ref(word).store(value, std::memory_order_relaxed);
}
template <typename T>
void publish(T& word, T value) {
  std::atomic_ref(word).store(value, std::memory_order_release);
}

std::int64_t nanoseconds(FlightRecorder::Clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}
std::int64_t now() { return nanoseconds(FlightRecorder::Clock::now()); }

template <std::size_t size>
void copy_text(std::string_view text, std::array<char, size>& to) {
  to.fill('\0');
  text.copy(to.data(), size);
}

[[noreturn]] void refuse(const std::filesystem::path& path, int error_number) {
  throw flight_failure(path.string(), error_number, -1);
}

// A file of zeros that gets its name only in keep(), so that a job that still writes an older file is not disturbed.
class NewFile {
 public:
  explicit NewFile(std::filesystem::path path)
      : path_(std::move(path)), temporary_(path_.string() + fmt::format(".{}.tmp", getpid())) {
    // Removes a leftover of a dead process with the same number, or another's file, instead of writing to it.
    unlink(temporary_.c_str());
    descriptor_ = open(temporary_.c_str(), O_CREAT | O_EXCL | O_NOFOLLOW | O_RDWR | O_CLOEXEC, 0644);
    if (descriptor_ < 0) refuse(path_, errno);
    // Reserves the blocks: without them a later store into the mapping could kill the rank.
    const int reason = reserve_blocks(descriptor_, 0, file_bytes);
    if (reason != 0) give_up(reason);
  }
  ~NewFile() { close(descriptor_); }
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  void* map() {
    void* memory = mmap(nullptr, file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, descriptor_, 0);
    if (memory == MAP_FAILED) give_up(errno);
    return memory;
  }
  void keep() {
    if (rename(temporary_.c_str(), path_.c_str()) != 0) give_up(errno);
  }

 private:
  [[noreturn]] void give_up(int reason) {
    unlink(temporary_.c_str());
    refuse(path_, reason);
  }

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
};

}  // namespace

Error flight_failure(const std::string& path, int error_number, int rank) {
  return Error({.code = ErrorCode::io,
                .message = "cannot write the file of the flight recorder",
                .rank = rank,
                .path = path,
                .error_number = error_number,
                .hint = "name a folder that all ranks may write to, best one in memory such as /dev/shm/flight"});
}

FlightRecorder::FlightRecorder(const std::filesystem::path& folder, const FlightOwner& owner) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  const auto path = folder / fmt::format("rank-{}.flight", owner.rank);
  if (failure) refuse(path, failure.value());
  NewFile file(path);
  memory_ = file.map();
  auto* bytes = static_cast<std::byte*>(memory_);
  header_ = new (bytes) FlightHeader;
  groups_ = new (bytes + flight_groups_offset) FlightGroup[flight_num_groups];
  entries_ = new (bytes + flight_entries_offset(flight_num_groups)) FlightEntry[flight_capacity];
  header_->magic = flight_magic;
  header_->version = flight_version;
  header_->entry_bytes = sizeof(FlightEntry);
  header_->capacity = flight_capacity;
  header_->num_groups = flight_num_groups;
  header_->rank = owner.rank;
  header_->size = owner.size;
  header_->job = owner.job;
  header_->process = static_cast<std::int32_t>(getpid());
  header_->thread = static_cast<std::int32_t>(syscall(SYS_gettid));
  header_->process_start = status_of(header_->process).value_or(ProcessStatus{}).start;
  header_->machine = this_machine();
  header_->start_steady = now();
  header_->start_wall = std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
  gethostname(header_->host.data(), header_->host.size() - 1);
  header_->check = check_of(*header_);
  header_->heartbeat = header_->start_steady;
  try {
    file.keep();
  } catch (...) {
    munmap(memory_, file_bytes);
    throw;
  }
  watch_signals(header_);
}

FlightRecorder::~FlightRecorder() {
  unwatch_signals(header_);
  munmap(memory_, file_bytes);
}

void FlightRecorder::enter_thread() {
  header_->thread = static_cast<std::int32_t>(syscall(SYS_gettid));
  header_->check = check_of(*header_);
}

FlightEntry* FlightRecorder::find(std::uint64_t number) {
  if (number == 0) return nullptr;
  FlightEntry& entry = entries_[number % flight_capacity];
  return entry.number == number ? &entry : nullptr;
}

// Groups that do not fit into the table share its last place.
std::uint32_t FlightRecorder::place_of(const Members& members) {
  FlightCheck check;
  check.add(std::hash<std::string>{}(members.label));
  for (const int rank : members.ranks) check.add(static_cast<std::uint64_t>(rank));
  check.add(namesakes_[check.value()]++);
  const std::uint32_t place = std::min(num_groups_++, flight_num_groups - 1);
  FlightGroup& group = groups_[place];
  store(group.id, std::uint64_t{0});
  group.size = members.size();
  group.me = members.me;
  group.calls = 0;
  copy_text(members.label, group.label);
  publish(group.id, check.value() | 1);
  return place;
}

void FlightRecorder::join(RecordedGroup& group, const Members& members) {
  if (!group.joined) [[unlikely]]
    group = {.joined = true, .place = place_of(members)};
}

std::uint64_t FlightRecorder::write(RecordedGroup& group, const Members& members, FlightEntry entry, std::string_view name) {
  join(group, members);
  const bool is_message = entry.kind == FlightKind::send || entry.kind == FlightKind::receive;
  entry.number = ++num_entries_;
  entry.sequence = is_message ? 0 : ++group.calls;
  entry.group = group.place;
  entry.issued = now();
  write_name(name, entry.name);
  entry.check = check_of(entry);
  FlightEntry& place = entries_[entry.number % flight_capacity];
  store(place.number, std::uint64_t{0});
  std::atomic_signal_fence(std::memory_order_seq_cst);
  std::memcpy(reinterpret_cast<std::byte*>(&place) + sizeof(place.number),
              reinterpret_cast<const std::byte*>(&entry) + sizeof(entry.number), sizeof(entry) - sizeof(entry.number));
  publish(place.number, entry.number);
  publish(header_->num_entries, entry.number);
  if (!is_message) publish(groups_[group.place].calls, group.calls);
  return entry.number;
}

std::uint64_t FlightRecorder::issue(RecordedGroup& group, const Members& members, const trireme::Call& call) {
  return write(group, members,
               {.count = call.count,
                .kind = static_cast<FlightKind>(call.kind),
                .op = static_cast<std::uint8_t>(call.op),
                .dtype = static_cast<std::uint8_t>(call.dtype),
                .peer = call.peer,
                .tag = call.tag},
               call.name);
}

void FlightRecorder::start(std::uint64_t number) {
  if (FlightEntry* entry = find(number)) store(entry->started, now());
}

void FlightRecorder::finish(std::uint64_t number) {
  FlightEntry* entry = find(number);
  if (entry == nullptr || entry->fate != FlightFate::under_way) return;
  store(entry->ended, now());
  publish(entry->fate, FlightFate::done);
}

void FlightRecorder::fail(std::uint64_t number) {
  FlightEntry* entry = find(number);
  if (entry == nullptr) return;
  if (header_->failed_in == 0) publish(header_->failed_in, number);
  if (entry->fate != FlightFate::under_way) return;
  store(entry->ended, now());
  publish(entry->fate, FlightFate::failed);
}

void FlightRecorder::begin_wait(std::uint64_t number, Clock::time_point now) {
  store(header_->waits_since, nanoseconds(now));
  store(header_->heartbeat, nanoseconds(now));
  publish(header_->waits_for, number);
}

void FlightRecorder::beat(Clock::time_point now) { store(header_->heartbeat, nanoseconds(now)); }
void FlightRecorder::end_wait() { store(header_->waits_for, std::uint64_t{0}); }

void FlightRecorder::end(int exit_code) {
  store(header_->exit_code, exit_code);
  store(header_->ended, now());
  publish(header_->state, FlightState::finished);
}

void FlightRecorder::end(const FlightFailure& failure) {
  store(header_->exit_code, failure.exit_code);
  store(header_->error_code, failure.error_code);
  store(header_->error_rank, failure.rank);
  const std::size_t bytes = failure.text.copy(header_->error.data(), header_->error.size());
  publish(header_->error_bytes, static_cast<std::uint64_t>(bytes));
  store(header_->ended, now());
  publish(header_->state, FlightState::failed);
}

}  // namespace trireme::comm
