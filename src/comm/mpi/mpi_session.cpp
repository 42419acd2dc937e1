#include "comm/mpi/mpi_session.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <thread>

#include "comm/mpi/mpi_calls.hpp"
#include "trireme/core/error.hpp"

namespace trireme::comm {
namespace {

constexpr std::chrono::milliseconds longest_closing_nap{50};
constexpr std::chrono::seconds abort_patience{3};  // how long to wait for another rank that ends the job

// How long other ranks may take to leave after a failure.
std::chrono::milliseconds grace_of(const RankContext& context) {
  return std::clamp<std::chrono::milliseconds>(context.deadline(), std::chrono::seconds(3), std::chrono::seconds(5));
}

// Open MPI's mpirun ends the job if a process just exits, but sometimes crashes or hangs after MPI_Abort.
[[noreturn]] void end_job(int exit_code) {
  if (std::getenv("OMPI_COMM_WORLD_SIZE") != nullptr) {
    std::fflush(nullptr);
    std::_Exit(exit_code);
  }
  MPI_Abort(MPI_COMM_WORLD, exit_code);
  std::abort();
}

// Ignores SIGPIPE during its lifetime: messages of a failed job may go to closed sockets of processes that have ended, which
// should be an error and not end this process.
class SurvivesClosedSockets {
 public:
  SurvivesClosedSockets() {
    struct sigaction ignore {};
    ignore.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &ignore, &before_);
  }
  ~SurvivesClosedSockets() { sigaction(SIGPIPE, &before_, nullptr); }
  SurvivesClosedSockets(const SurvivesClosedSockets&) = delete;
  SurvivesClosedSockets& operator=(const SurvivesClosedSockets&) = delete;

 private:
  struct sigaction before_ {};
};

std::atomic<bool> in_job{false};  // a launch is running: MPI_Finalize would wait for its other ranks
std::atomic<pid_t> owner{0};      // the process in which a launch initialised MPI; its forks have no MPI

void finalize_at_exit() {
  int finalized = 0;
  MPI_Finalized(&finalized);
  if (finalized == 0 && !in_job && getpid() == owner) MPI_Finalize();
}

// Waits for the other ranks at a later launch, at most until the deadline, in case they launch less often.
void meet(std::chrono::milliseconds deadline) {
  const auto end = std::chrono::steady_clock::now() + deadline;
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Ibarrier(MPI_COMM_WORLD, &request), "MPI_Ibarrier");
  for (int done = 0;;) {
    check_mpi(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done != 0) return;
    if (std::chrono::steady_clock::now() >= end) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  throw Error({.code = ErrorCode::timeout,
               .message = fmt::format("the other ranks have not called this launch within {} ms", deadline.count()),
               .hint = "all ranks of a job launch equally often"});
}

}  // namespace

MpiSession::MpiSession(std::chrono::milliseconds deadline) {
  int initialized = 0;
  int finalized = 0;
  check_mpi(MPI_Initialized(&initialized), "MPI_Initialized");
  check_mpi(MPI_Finalized(&finalized), "MPI_Finalized");
  require(finalized == 0, "MPI is finalized: by the program, or since a job of this process has failed; it can't begin again");
  in_job = true;
  int provided = MPI_THREAD_SINGLE;
  if (initialized == 0) {
    check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread");
    owner = getpid();
    std::atexit(finalize_at_exit);
  } else {
    check_mpi(MPI_Query_thread(&provided), "MPI_Query_thread");
    meet(deadline);
  }
  require(provided >= MPI_THREAD_SERIALIZED, "MPI was initialised with thread level {}, trireme needs MPI_THREAD_SERIALIZED",
          provided);
  check_mpi(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
}

int MpiSession::finish(RankContext& context, MpiAlarm& alarm, int code, const std::function<void()>& look) {
  context.leave();
  alarm.leave();
  NodeControl& node = context.node();
  std::optional<SurvivesClosedSockets> survives;
  auto end = std::chrono::steady_clock::time_point::max();
  std::chrono::milliseconds nap{1};
  while (!node.all_left() || !alarm.all_left()) {
    const auto now = std::chrono::steady_clock::now();
    context.check_neighbours(now);
    look();
    if (node.failed() && !survives) survives.emplace();
    if (node.failed() && end == std::chrono::steady_clock::time_point::max()) end = now + grace_of(context);
    if (now >= end && (node.claim_abort() || now >= end + abort_patience)) end_job(node.failure().exit_code);
    alarm.advance();
    int found = 0;  // any call of MPI advances the messages that others still receive
    MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
    std::this_thread::sleep_for(nap);
    nap = std::min(2 * nap, longest_closing_nap);
  }
  if (node.failed() && !survives) survives.emplace();
  in_job = false;
  if (node.failed() && owner != 0) MPI_Finalize();
  return context.conclude(code);
}

}  // namespace trireme::comm
