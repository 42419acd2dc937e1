#include "supervisor.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "processes.hpp"
#include "trireme/core/error.hpp"
#include "trireme/core/exit_code.hpp"
#include "trireme/core/stopwatch.hpp"
#include "trireme/files/location.hpp"
#include "verdict.hpp"

namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds launcher_patience{3};  // time for mpirun to end its ranks after SIGTERM

// Creates a new folder in `place`. Its name begins with `prefix`.
fs::path folder_in(const fs::path& place, const std::string& prefix) {
  constexpr int random_letters = 6;  // mkdtemp() replaces them
  std::string path = (place / prefix).string() + std::string(random_letters, 'X');
  if (mkdtemp(path.data()) == nullptr) {
    throw trireme::Error(
        {.code = trireme::ErrorCode::io, .message = "can't create a folder", .path = path, .error_number = errno});
  }
  return path;
}

// A folder in memory if there is one.
fs::path memory_folder() {
  const fs::path shared = "/dev/shm";
  return access(shared.c_str(), W_OK) == 0 ? shared : fs::temp_directory_path();
}

// The ranks on all machines must reach this folder, so it lies in the folder of checkpoints if there is one.
fs::path make_scratch(const fs::path& checkpoints, const std::string& name) {
  if (checkpoints.empty()) return folder_in(memory_folder(), name + "-");
  fs::create_directories(checkpoints);
  return folder_in(checkpoints, "." + name + "-");
}

// Whether files in the folder can be mapped as the flight recorder maps them. On object stores this often fails.
bool holds_mappings(const fs::path& folder) {
  constexpr std::size_t page = 4096;
  const fs::path path = folder / "probe";
  const Descriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  bool holds = file.get() >= 0 && ftruncate(file.get(), page) == 0;
  if (holds) {
    void* memory = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    holds = memory != MAP_FAILED;
    if (holds) munmap(memory, page);
  }
  unlink(path.c_str());
  return holds;
}

// The job has ended, so all its ranks have. Marks those as vanished whose processes can't be seen, as ranks of other machines.
void note_end(Job& job) {
  for (RankView& rank : job.ranks) {
    if (rank.state == RankState::waiting || rank.state == RankState::running) rank.state = RankState::vanished;
  }
}

SupervisorOptions complete(SupervisorOptions options) {
  if (options.checkpoints.empty()) options.checkpoints = option_of(options.command, "--checkpoint-dir").value_or("");
  options.checkpoints = trireme::Location(options.checkpoints);  // file:/run becomes /run; another scheme is an error
  return options;
}

// Main has returned or thrown. A rank without a file counts as returned: nothing is known of it.
bool has_returned(const RankView& rank) {
  return rank.state == RankState::finished || rank.state == RankState::failed || rank.state == RankState::missing;
}

int milliseconds_until(Clock::time_point end) {
  if (end == Clock::time_point::max()) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000));
}

void remove_folder(const fs::path& folder) {
  std::error_code ignored;
  if (!folder.empty()) fs::remove_all(folder, ignored);
}

template <typename... Args>
void say(fmt::format_string<Args...> format, Args&&... args) {
  tell(fmt::format("trireme-run: {}\n", fmt::format(format, std::forward<Args>(args)...)));
}

}  // namespace

Supervisor::Supervisor(SupervisorOptions options, Descriptor signals)
    : options_(complete(std::move(options))),
      checkpoints_(options_.checkpoints, resume_of(options_.command)),
      recovery_(options_.restarts, committed()),
      signals_(std::move(signals)) {
  ::signal(SIGPIPE, SIG_IGN);  // when the guardian has just ended, or nobody reads stderr any more
  ::signal(SIGCHLD, SIG_DFL);
  adopt_descendants();
  scratch_ = make_scratch(options_.checkpoints, "trireme-run");
  if (const auto folder = option_of(options_.command, "--flight-dir")) {
    flight_ = *folder;
  } else if (const char* variable = std::getenv("TRIREME_FLIGHT_DIR")) {
    flight_ = variable;
  } else {
    flight_ = make_scratch(options_.checkpoints, "trireme-flight");
    if (!holds_mappings(flight_)) {
      remove_folder(flight_);
      flight_ = make_scratch({}, "trireme-flight");
    }
    own_flight_ = true;
  }
}

Supervisor::~Supervisor() {
  remove_folder(scratch_);
  if (own_flight_) remove_folder(flight_);
}

Launch Supervisor::launch_for(const std::string& resume) const {
  Launch launch{.command = options_.command,
                .environment = openmpi_settings(options_.command),
                .signals = options_.signals,
                .scratch = {scratch_}};
  launch.environment.insert(launch.environment.end(), identity_.begin(), identity_.end());
  const std::string status = status_file().string();
  launch.environment.emplace_back("TRIREME_RUN_STATUS", status);
  launch.mark = "TRIREME_RUN_STATUS=" + status;
  if (own_flight_) {
    launch.environment.emplace_back("TRIREME_FLIGHT_DIR", flight_.string());
    launch.scratch.push_back(flight_);
  }
  if (!resume.empty()) launch.environment.emplace_back("TRIREME_RESUME", resume);
  share_with_ranks(launch.command, launch.environment);
  return launch;
}

void Supervisor::take_signals(Guardian* guardian) {
  signalfd_siginfo info{};
  while (read(signals_.get(), &info, sizeof(info)) == sizeof(info)) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGINT && ++interrupts_ == 2 && guardian != nullptr) {
      say("a second SIGINT: the job is killed");
      forced_ = true;
      guardian->order(Guardian::Order::kill);
    }
    if (std::exchange(asked_, true)) continue;
    say("SIG{}: the job is asked to save and stop, for at most {} s", sigabbrev_np(signal), options_.grace.count());
    if (guardian != nullptr) guardian->order(Guardian::Order::stop);
  }
}

void Supervisor::pass_on_messages(const Guardian& guardian, LastLines& messages) {
  std::array<char, 16384> buffer;
  for (ssize_t bytes = 0; (bytes = read(guardian.messages(), buffer.data(), buffer.size())) > 0;) {
    const std::string_view text(buffer.data(), static_cast<std::size_t>(bytes));
    messages.add(text);
    tell(text);
  }
}

Ending Supervisor::watch(Guardian& guardian, LastLines& messages) {
  auto deadline = Clock::time_point::max();  // for `next`, once the job was asked to stop
  Guardian::Order next = Guardian::Order::terminate;
  bool asked = false;
  bool open = true;  // the job's stderr
  for (;;) {
    if (asked_ && !std::exchange(asked, true)) deadline = Clock::now() + options_.grace;
    pollfd events[] = {
        {guardian.ended(), POLLIN, 0}, {signals_.get(), POLLIN, 0}, {open ? guardian.messages() : -1, POLLIN, 0}};
    poll(events, 3, milliseconds_until(deadline));
    if (events[2].revents != 0) {
      pass_on_messages(guardian, messages);
      open = (events[2].revents & POLLHUP) == 0;
    }
    if (events[0].revents != 0) break;
    if (events[1].revents != 0) take_signals(&guardian);
    if (Clock::now() < deadline) continue;
    if (next == Guardian::Order::terminate) say("the job has not stopped within {} s: it is ended", options_.grace.count());
    forced_ = true;
    guardian.order(next);
    next = Guardian::Order::kill;
    deadline = Clock::now() + launcher_patience;
  }
  const Ending ending = guardian.wait();
  pass_on_messages(guardian, messages);
  return ending;
}

// The flight recorder's files of the job that was started at `start`, in seconds since 1970.
std::optional<Job> Supervisor::recorded_since(double start) const {
  std::vector<std::string> notes;
  auto job = read_job(flight_, notes);
  if (!job) return std::nullopt;
  const bool of_this_start = std::ranges::any_of(job->ranks, [&](const RankView& rank) {
    return rank.file && wall_seconds(*rank.file, rank.header().start_steady) >= start;
  });
  return of_this_start ? std::move(job) : std::nullopt;
}

const std::vector<std::uint64_t>& Supervisor::committed() {
  try {
    committed_ = checkpoints_.steps();
  } catch (const std::exception& error) {  // the file system may be back at the next start
    say("the checkpoints can't be read: {}", error.what());
  }
  return committed_;
}

// The last status that rank 0 reported. Returns nothing if there is none or it can't be read.
std::optional<trireme::RunStatus> Supervisor::reported() const {
  try {
    return trireme::read_run_status(status_file());
  } catch (const trireme::Error& error) {
    say("{}", error.what());
    return std::nullopt;
  }
}

Attempt Supervisor::start(const std::string& resume) {
  std::error_code ignored;
  fs::remove(status_file(), ignored);
  const std::vector<std::uint64_t> before = committed_;
  const trireme::Stopwatch stopwatch;
  const double since = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  const std::uint64_t kills = num_kills_for_memory();
  forced_ = false;
  LastLines messages;
  Ending ending;
  {
    Guardian guardian(launch_for(resume));
    ending = watch(guardian, messages);
  }
  auto job = recorded_since(since);
  const bool has_saved = !std::ranges::includes(before, committed());
  const Witness witness{.status = reported(),
                        .begun = has_saved || fs::exists(status_file(), ignored),
                        .has_launcher = names_launcher(options_.command),
                        .had_ranks = job.has_value() || tells_of_rank(messages.lines()),
                        .all_returned = !job || std::ranges::all_of(job->ranks, has_returned),
                        .asked = asked_,
                        .forced = forced_,
                        .kills = num_kills_for_memory() - kills};
  Attempt attempt{.cause = cause_of(ending, witness),
                  .exit_code = exit_code_of(ending),
                  .ending = text_of(ending),
                  .status = witness.status,
                  .begun = witness.begun,
                  .resume = resume,
                  .seconds = stopwatch.seconds(),
                  .messages = messages.lines()};
  if (ended_early(ending, witness)) {
    attempt.exit_code = static_cast<int>(trireme::ExitCode::failure);
    attempt.ending += " of the launcher, but the job has not finished";
  }
  if (!committed_.empty()) attempt.checkpoint = committed_.back();
  if (job && attempt.cause != Cause::finished && attempt.cause != Cause::stopped) {
    note_end(*job);
    for (const Finding& finding : find_causes(*job)) attempt.findings.push_back(finding.text);
  }
  return attempt;
}

bool Supervisor::wait(std::chrono::seconds pause) {
  const auto end = Clock::now() + pause;
  while (!asked_ && Clock::now() < end) {
    pollfd event{signals_.get(), POLLIN, 0};
    poll(&event, 1, milliseconds_until(end));
    take_signals(nullptr);
  }
  take_signals(nullptr);
  return !asked_;
}

int Supervisor::conclude(const Decision& decision) {
  const Attempt& last = attempts_.back();
  const bool well = last.cause == Cause::finished || last.cause == Cause::stopped;
  int code = reported_code(last.cause, last.exit_code);
  if (asked_ || last.cause == Cause::stopped) {
    if (last.cause != Cause::finished) code = options_.preempted_code.value_or(code);
  }
  std::error_code ignored;
  const Report report{.command = options_.command,
                      .attempts = attempts_,
                      .exit_code = code,
                      .reason = asked_ ? "the job was asked to stop" : decision.reason,
                      .flight = well || fs::is_empty(flight_, ignored) ? fs::path() : flight_};
  if (!well) {
    print(report);
    if (!report.flight.empty()) own_flight_ = false;  // keep its files
  }
  try {
    if (!options_.report.empty()) write(report, options_.report);
  } catch (const trireme::Error& error) {
    say("the report is not written: {}", error.what());
  }
  return code;
}

int Supervisor::run() {
  Decision decision{.restart = true};
  while (true) {
    attempts_.push_back(start(decision.resume));
    const Attempt& last = attempts_.back();
    decision = recovery_.after(last.cause, committed_, last.begun);
    if (!decision.restart || asked_) return conclude(decision);
    say("{}, {}, {}", name_of(last.cause), last.ending, step_text(last));
    for (const std::string& finding : last.findings) say("{}", finding);
    say("restart {} of at most {} without a new checkpoint, in {} s, {}", decision.number, options_.restarts,
        decision.pause.count(), decision.reason);
    if (!wait(decision.pause)) return conclude(decision);
  }
}
