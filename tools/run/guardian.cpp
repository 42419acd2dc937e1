#include "guardian.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <set>
#include <type_traits>

#include "trireme/core/error.hpp"

namespace {

using Clock = std::chrono::steady_clock;

constexpr std::array ignored_signals = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGPIPE};
constexpr std::chrono::milliseconds look_interval{1000};
constexpr std::chrono::milliseconds first_look_interval{50};  // until ranks have been seen: short jobs end soon
constexpr std::chrono::seconds first_looks{2};
constexpr std::chrono::seconds longest_farewell{3};  // for the end of a job whose trireme-run has died

[[noreturn]] void become(const Launch& job, pid_t guardian, int failure) {
  // If the guardian and trireme-run are both killed, mpirun gets SIGTERM and ends its ranks.
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != guardian) std::_Exit(1);
  hand_down(job.signals);
  for (const auto& [name, value] : job.environment) setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> arguments;
  for (const std::string& argument : job.command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments.front(), arguments.data());
  const int error_number = errno;
  [[maybe_unused]] const auto told = write(failure, &error_number, sizeof(error_number));
  std::_Exit(127);
}

// The work of the guardian process.
class Watch {
 public:
  Watch(const Launch& job, int orders) : job_(job), orders_(orders), children_(watch({SIGCHLD})) {}

  Ending run() {
    if (!start()) return ending_;
    while (!ended()) {
      pollfd events[] = {{orders_, POLLIN, 0}, {children_.get(), POLLIN, 0}};
      poll(events, 2, static_cast<int>(interval().count()));
      if (events[0].revents != 0) take_order();
      drain_signals();
      look_for_ranks();
      if (Clock::now() >= end_) signal_launcher(SIGKILL);
    }
    kill_children([](const LivingProcess&) { return true; });
    return ending_;
  }
  bool alone() const { return orders_ < 0; }  // trireme-run has died

 private:
  bool start() {
    Pipe failure = open_pipe();
    const pid_t guardian = getpid();
    launcher_ = fork();
    if (launcher_ == 0) become(job_, guardian, failure.in.get());
    if (launcher_ < 0) ending_.start_error = errno;
    failure.in.reset();
    if (launcher_ > 0) read_error(failure.out.get());
    return ending_.start_error == 0;
  }

  void read_error(int descriptor) {
    int error_number = 0;
    if (read(descriptor, &error_number, sizeof(error_number)) == sizeof(error_number)) ending_.start_error = error_number;
  }

  // Only before ended() has reaped the launcher: afterwards another process may have its id.
  void signal_launcher(int signal) const {
    if (!ending_.status) kill(launcher_, signal);
  }

  std::chrono::milliseconds interval() const {
    return !ending_.had_ranks && Clock::now() < begin_ + first_looks ? first_look_interval : look_interval;
  }

  // Reaps children that have ended. Returns true if the launcher has ended.
  bool ended() {
    int status = 0;
    for (pid_t child = 0; (child = waitpid(-1, &status, WNOHANG)) > 0;) {
      if (child == launcher_) ending_.status = status;
    }
    return ending_.status.has_value();
  }

  void take_order() {
    char order = 0;
    const ssize_t bytes = read(orders_, &order, 1);
    if (bytes < 0 && errno == EINTR) return;
    if (bytes <= 0) {
      orders_ = -1;
      signal_launcher(SIGTERM);
      end_ = std::min(end_, Clock::now() + std::min<std::chrono::milliseconds>(job_.patience, longest_farewell));
      return;
    }
    switch (static_cast<Guardian::Order>(order)) {
      case Guardian::Order::stop: ask_to_stop(); return;
      case Guardian::Order::terminate: signal_launcher(SIGTERM); return;
      case Guardian::Order::kill: signal_launcher(SIGKILL); return;
    }
  }

  // A launcher passes the signal only to ranks that it has already started. So the signal is repeated until ranks had been seen
  // before it was sent.
  void ask_to_stop() {
    heard_ = ending_.had_ranks;
    asked_ = true;
    next_ask_ = Clock::now() + look_interval;
    signal_launcher(SIGUSR1);
  }

  void drain_signals() {
    std::array<char, 1024> ignored{};
    while (read(children_.get(), ignored.data(), ignored.size()) > 0) {
    }
  }

  // mpirun of Open MPI may hang when its ranks have ended. A script that runs mpirun may go on after that, so only a process
  // that started ranks itself counts as stuck. Ranks on other machines are not seen here.
  void look_for_ranks() {
    const auto now = Clock::now();
    if (now < next_look_) return;
    next_look_ = now + interval();
    const std::vector<LivingProcess> family = family_of(launcher_);
    std::set<pid_t> ranks;
    for (const LivingProcess& process : family) {
      if (is_rank(process.id)) ranks.insert(process.id);
    }
    if (!ranks.empty()) {
      ending_.had_ranks = true;
      last_rank_ = now;
      note_starters(family, ranks);
    } else if (ending_.had_ranks && now - last_rank_ > job_.patience && std::ranges::any_of(family, [&](const auto& process) {
                 return starters_.contains({process.id, process.start});
               })) {
      ending_.stuck = true;
      signal_launcher(SIGKILL);
    }
    if (asked_ && !heard_ && now >= next_ask_) ask_to_stop();
  }

  void note_starters(const std::vector<LivingProcess>& family, const std::set<pid_t>& ranks) {
    std::set<pid_t> parents;
    for (const LivingProcess& process : family) {
      if (ranks.contains(process.id) && !ranks.contains(process.parent)) parents.insert(process.parent);
    }
    for (const LivingProcess& process : family) {
      if (parents.contains(process.id)) starters_.emplace(process.id, process.start);
    }
  }

  const Launch& job_;
  int orders_;
  Descriptor children_;
  pid_t launcher_ = -1;
  Clock::time_point end_ = Clock::time_point::max();
  Clock::time_point next_look_{};
  const Clock::time_point begin_ = Clock::now();
  Clock::time_point last_rank_{};                       // when a rank was last seen
  std::set<std::pair<pid_t, std::uint64_t>> starters_;  // id and start of the processes that started ranks
  bool asked_ = false;                                  // to stop
  bool heard_ = false;
  Clock::time_point next_ask_{};
  Ending ending_;
};

static_assert(std::is_trivially_copyable_v<Ending>);  // it is written into a pipe

[[noreturn]] void guard(const Launch& job, int orders, int result, int messages) {
  setsid();
  adopt_descendants();
  for (const int signal : ignored_signals) ::signal(signal, SIG_IGN);
  ::signal(SIGCHLD, SIG_DFL);  // if it were ignored, the status of the launcher would be lost, and its id could be reused
  dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
  dup2(messages, STDERR_FILENO);
  Watch watch(job, orders);
  const Ending ending = watch.run();
  if (watch.alone()) {
    std::error_code ignored;
    for (const auto& path : job.scratch) std::filesystem::remove_all(path, ignored);
  }
  [[maybe_unused]] const auto told = write(result, &ending, sizeof(ending));
  std::_Exit(0);
}

}  // namespace

Guardian::Guardian(const Launch& job) : mark_(job.mark) {
  Pipe orders = open_pipe();
  Pipe ending = open_pipe();
  Pipe messages = open_pipe();
  process_ = fork();
  if (process_ < 0) {
    throw trireme::Error(
        {.code = trireme::ErrorCode::io, .message = "can't start a process", .operation = "fork", .error_number = errno});
  }
  if (process_ == 0) {
    orders.in.reset();
    ending.out.reset();
    messages.out.reset();
    guard(job, orders.out.get(), ending.in.get(), messages.in.get());
  }
  session_ = process_;
  orders_ = std::move(orders.in);
  ending_ = std::move(ending.out);
  messages_ = std::move(messages.out);
  fcntl(messages_.get(), F_SETFL, O_NONBLOCK);
}

Guardian::~Guardian() {
  order(Order::kill);
  wait();
}

void Guardian::order(Order order) {
  if (orders_.get() < 0) return;
  const char letter = static_cast<char>(order);
  [[maybe_unused]] const auto written = write(orders_.get(), &letter, 1);  // fails if the job has just ended
}

// This process may also have other children, and adopt processes from them.
bool Guardian::owns(const LivingProcess& process) const {
  return process.session == session_ || (!mark_.empty() && has_variable(process.id, mark_));
}

Ending Guardian::wait() {
  Ending ending;
  ssize_t bytes = 0;
  do {
    bytes = read(ending_.get(), static_cast<void*>(&ending), sizeof(ending));
  } while (bytes < 0 && errno == EINTR);
  if (process_ > 0) waitpid(std::exchange(process_, -1), nullptr, 0);
  orders_.reset();                                                                // nobody reads orders any more
  kill_children([this](const LivingProcess& process) { return owns(process); });  // in case the guardian was killed
  return bytes == sizeof(ending) ? ending : Ending{};
}
