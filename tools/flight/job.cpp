#include "job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <system_error>

#include "comm/flight/flight_signals.hpp"
#include "core/process.hpp"
#include "trireme/core/error.hpp"

using namespace trireme::comm;

namespace {

double seconds_now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

std::int64_t last_sign(const FlightFile& file) {
  std::int64_t last = std::max({file.header.start_steady, file.header.heartbeat, file.header.ended});
  for (const FlightEntry& entry : file.entries) last = std::max({last, entry.issued, entry.started, entry.ended});
  return last;
}

RankState state_of(const RankView& view) {
  const FlightHeader& header = view.header();
  if (header.state == FlightState::finished) return RankState::finished;
  if (header.state == FlightState::failed) return RankState::failed;
  if (view.local) {
    const auto process = trireme::status_of(header.process);
    const auto thread = trireme::status_of(header.process, header.thread);
    const bool here = process && thread && process->start == header.process_start && process->state != 'Z' &&
                      process->state != 'X' && thread->state != 'Z' && thread->state != 'X';
    if (!here) return RankState::vanished;
    if (thread->state == 'T' || thread->state == 't') return RankState::stopped;
  }
  return header.waits_for != 0 ? RankState::waiting : RankState::running;
}

RankView view_of(FlightFile file, double now) {
  RankView view{.rank = file.header.rank, .file = std::move(file)};
  const FlightHeader& header = view.header();
  view.local = header.machine == this_machine();
  view.state = state_of(view);
  const std::int64_t last = last_sign(*view.file);
  view.age = std::max(0.0, now - wall_seconds(*view.file, last));
  if (header.waits_for != 0) {
    const bool goes_on = view.state == RankState::waiting && view.local;
    const double until = goes_on ? now : wall_seconds(*view.file, last);
    view.waited = std::max(0.0, until - wall_seconds(*view.file, header.waits_since));
  }
  return view;
}

}  // namespace

std::string_view name_of(RankState state) {
  switch (state) {
    case RankState::missing: return "missing";
    case RankState::finished: return "finished";
    case RankState::failed: return "failed";
    case RankState::vanished: return "vanished";
    case RankState::stopped: return "stopped";
    case RankState::waiting: return "waiting";
    case RankState::running: return "running";
  }
  return "unknown";
}

double wall_seconds(const FlightFile& file, std::int64_t time) {
  return (static_cast<double>(file.header.start_wall) +
          (static_cast<double>(time) - static_cast<double>(file.header.start_steady))) *
         1e-9;
}

std::string plain(std::string_view text) {
  std::string result(text);
  std::ranges::replace_if(
      result, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }, '?');
  return result;
}

std::string plain(const char* text, std::size_t bytes) { return plain(std::string_view(text, strnlen(text, bytes))); }

std::string RankView::place() const {
  return fmt::format("(host {}, pid {})", plain(header().host.data(), header().host.size()), header().process);
}

const FlightEntry* RankView::last() const {
  if (!file || file->entries.empty()) return nullptr;
  const auto found =
      std::find_if(file->entries.rbegin(), file->entries.rend(), [](const FlightEntry& entry) { return entry.sequence != 0; });
  return found != file->entries.rend() ? &*found : &file->entries.back();
}

const FlightEntry* RankView::stuck_in() const {
  if (!file) return nullptr;
  if (state == RankState::finished) return nullptr;
  if (const FlightEntry* entry = file->find(header().failed_in)) return entry;
  if (const FlightEntry* entry = file->find(header().waits_for)) return entry;
  const FlightEntry* entry = last();  // is it at work on it?
  return entry != nullptr && entry->started != 0 && entry->fate == FlightFate::under_way ? entry : nullptr;
}

std::string RankView::error() const {
  return plain(std::string_view(header().error.data(), static_cast<std::size_t>(header().error_bytes)));
}

std::string RankView::end_text() const {
  const int signal = header().signal;
  if (signal == 0) return "vanished without a word (SIGKILL, or _exit)";
  const char* name = signal > 0 ? sigabbrev_np(signal) : nullptr;
  return fmt::format("was ended by {}", name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal));
}

std::optional<Job> read_job(const std::filesystem::path& folder, std::vector<std::string>& notes) {
  std::map<std::uint64_t, std::vector<FlightFile>> jobs;
  std::error_code failure;
  std::vector<std::filesystem::path> paths;
  for (auto file = std::filesystem::directory_iterator(folder, failure);
       !failure && file != std::filesystem::directory_iterator(); file.increment(failure)) {
    if (file->path().extension() == ".flight") paths.push_back(file->path());
  }
  if (failure) {
    notes.push_back(fmt::format("{}: {}", folder.string(), failure.message()));
    return std::nullopt;
  }
  std::ranges::sort(paths);
  for (const auto& path : paths) {
    try {
      FlightFile file = read_flight_file(path);
      if (file.num_damaged > 0) {
        notes.push_back(fmt::format("{}: {} damaged entries are left out", path.string(), file.num_damaged));
      }
      jobs[file.header.job].push_back(std::move(file));
    } catch (const trireme::Error& error) {
      notes.push_back(fmt::format("{}: {}", path.string(), error.fields().message));
      if (error.fields().error_number != 0)
        notes.back() += fmt::format(": {}", std::generic_category().message(error.fields().error_number));
    }
  }
  if (jobs.empty()) {
    if (paths.empty()) notes.push_back(fmt::format("{}: no *.flight files", folder.string()));
    return std::nullopt;
  }
  const auto start_of = [](const auto& job) {
    return std::ranges::max(job.second, {}, [](const FlightFile& file) { return file.header.start_wall; }).header.start_wall;
  };
  auto newest = std::ranges::max_element(jobs, {}, start_of);
  for (auto job = jobs.begin(); job != jobs.end(); ++job) {
    if (job == newest) continue;
    for (const FlightFile& file : job->second) {
      notes.push_back(fmt::format("{}: of an earlier job, left out", file.path.string()));
    }
  }
  Job job{.ranks = {}, .notes = {}, .now = seconds_now()};
  // A rank number that is too large for any machine is damage: nothing is allocated for it.
  const int size = std::ranges::max(newest->second, {}, [](const FlightFile& file) { return file.header.size; }).header.size;
  constexpr int most_ranks = 1 << 20;
  job.ranks.resize(static_cast<std::size_t>(std::min(size, most_ranks)));
  for (std::size_t rank = 0; rank < job.ranks.size(); ++rank) job.ranks[rank].rank = static_cast<int>(rank);
  for (FlightFile& file : newest->second) {
    const auto rank = static_cast<std::size_t>(file.header.rank);
    if (rank >= job.ranks.size()) continue;
    if (job.ranks[rank].file) {
      notes.push_back(fmt::format("{}: another file of rank {}, left out", file.path.string(), rank));
      continue;
    }
    job.ranks[rank] = view_of(std::move(file), job.now);
  }
  job.notes = notes;
  return job;
}
