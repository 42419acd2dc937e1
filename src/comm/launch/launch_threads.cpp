#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "comm/flight/flight.hpp"
#include "comm/launch/cores.hpp"
#include "comm/launch/launch.hpp"
#include "comm/shared/thread_platform.hpp"

namespace trireme::comm {
namespace {

// Waits until all ranks have returned. A thread can't be ended from outside, so after a failure the process ends if ranks do
// not return before the deadline.
class Returns {
 public:
  explicit Returns(int ranks) : missing_(static_cast<std::size_t>(ranks)) {
    for (int rank = 0; rank < ranks; ++rank) missing_[static_cast<std::size_t>(rank)] = rank;
  }

  void note(int rank) {
    const std::lock_guard lock(mutex_);
    std::erase(missing_, rank);
    changed_.notify_all();
  }

  void wait(const NodeControl& node, std::chrono::milliseconds deadline) {
    std::unique_lock lock(mutex_);
    std::optional<std::chrono::steady_clock::time_point> end;
    while (!changed_.wait_for(lock, look_interval, [this] { return missing_.empty(); })) {
      const auto now = std::chrono::steady_clock::now();
      if (!end && node.failed()) end = now + std::max(deadline, least_grace);
      if (end && now >= *end) give_up(node.failure().exit_code);
    }
  }

 private:
  static constexpr std::chrono::milliseconds look_interval{100};
  static constexpr std::chrono::milliseconds least_grace{1000};

  [[noreturn]] void give_up(int exit_code) const {
    // Not through the log, since a rank may hang in its sink.
    const std::string text = fmt::format("trireme: {} not returned after the failure; this ends the process\n",
                                         list_of_ranks(missing_) + (missing_.size() == 1 ? " has" : " have"));
    std::fputs(text.c_str(), stderr);  // fmt::print would throw if stderr is closed
    std::fflush(nullptr);
    std::_Exit(exit_code);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<int> missing_;
};

// Runs rank(r) for each rank on its own thread. Runs all ranks or none: if the system refuses a thread, the others would wait
// for that rank until their deadlines.
std::vector<std::jthread> start_threads(int ranks, const std::function<void(int)>& rank) {
  enum class Start : std::uint8_t { later, now, never };
  const auto start = std::make_shared<std::atomic<Start>>(Start::later);
  const auto tell = [&start](Start when) {
    start->store(when);
    start->notify_all();
  };
  std::vector<std::jthread> threads;
  threads.reserve(static_cast<std::size_t>(ranks));
  try {
    for (int one = 0; one < ranks; ++one) {
      threads.emplace_back([start, &rank, one] {
        start->wait(Start::later);
        if (start->load() == Start::now) rank(one);
      });
    }
  } catch (const std::system_error& error) {
    tell(Start::never);
    throw Error({.code = ErrorCode::out_of_memory,
                 .message = fmt::format("the system gives this process threads for {} of {} ranks", threads.size(), ranks),
                 .error_number = error.code().value(),
                 .hint = "start fewer ranks, or raise the limit of processes (ulimit -u, the pids of a container)"});
  } catch (...) {
    tell(Start::never);
    throw;
  }
  tell(Start::now);
  return threads;
}

}  // namespace

int launch_threads(const LaunchOptions& options, const std::function<int(Group)>& main) {
  const int ranks = options.ranks;
  const cpu_set_t mask = own_cores();
  const int cores = usable_cores(mask, ranks, ranks);
  const std::shared_ptr<NodeControl> node = make_node_control(ranks);
  const auto group = std::make_shared<ThreadGroup>(ranks);
  const auto flights = open_flights(options.flight_directory, ranks);

  std::vector<int> codes(static_cast<std::size_t>(ranks));
  Returns returns(ranks);
  const auto run = [&](int rank) {
    set_threads(threads_of_rank(cores, ranks, options.threads_per_rank));
    const auto context = std::make_shared<RankContext>(
        RankContext::Place{
            .rank = rank, .node_rank = rank, .shares_all = true, .shares_cores = ranks > cores, .deadline = options.deadline},
        node);
    if (const auto& flight = flights[static_cast<std::size_t>(rank)]) {
      flight->enter_thread();
      context->record_to(flight);
    }
    const auto platform = std::make_shared<ThreadPlatform>(context);
    codes[static_cast<std::size_t>(rank)] = run_rank(*context, platform->join(world_members(rank, ranks), group), main);
    context->leave();
    returns.note(rank);
  };
  {
    const std::function<void(int)> rank = run;
    const std::vector<std::jthread> threads = start_threads(ranks, rank);
    returns.wait(*node, options.deadline);
  }
  return std::ranges::max(codes);
}

}  // namespace trireme::comm
