#include "comm/waiting.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <chrono>

#include "comm/rank_context.hpp"

namespace trireme::comm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int spins = 400;  // about 20 us
constexpr int yields = 100;
constexpr std::chrono::microseconds longest_sleep = std::chrono::milliseconds(100);
constexpr std::chrono::microseconds polling_sleep{250};  // while a network library needs calls to advance

void pause_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

[[noreturn]] void miss_deadline(RankContext& context, const Awaited& awaited) {
  ErrorFields fields = awaited.describe_wait();
  fields.code = ErrorCode::timeout;
  fields.message = fmt::format("no progress for {} ms: {}", context.deadline().count(), fields.message);
  fields.rank = context.rank();
  const Error error(std::move(fields));
  context.record_failure(error);  // the other ranks can't finish this collective either
  throw error;
}

// Tells the flight recorder what this rank waits for. After an error it still says so.
class NotedWait {
 public:
  NotedWait(FlightRecorder* flight, const Awaited& awaited) : flight_(flight), number_(awaited.flight_number) {}

  void begin(Clock::time_point now) {
    if (flight_ != nullptr) flight_->begin_wait(number_, now);
    begun_ = true;
  }
  void go_on(Clock::time_point now) {
    if (flight_ != nullptr) flight_->beat(now);
  }
  void end() {
    if (flight_ != nullptr && begun_) flight_->end_wait();
  }

 private:
  FlightRecorder* flight_;
  std::uint64_t number_;
  bool begun_ = false;
};

}  // namespace

void wait_for(RankContext& context, Awaited& awaited) {
  const int spin_limit = context.shares_cores() ? 0 : spins;
  Clock::time_point end{};
  NotedWait noted(context.flight(), awaited);
  for (int round = 0;; ++round) {
    context.advance();
    const bool ready = awaited.ready();
    context.wake_others();
    if (ready) return noted.end();
    context.check_failure();
    awaited.check_peers();
    if (round < spin_limit) {
      pause_core();
      continue;
    }
    const auto now = Clock::now();
    if (round == spin_limit) {
      end = now + context.deadline();
      noted.begin(now);
    }
    if (now >= end) miss_deadline(context, awaited);
    if (round < spin_limit + yields) {
      sched_yield();
      continue;
    }
    noted.go_on(now);
    const auto left = std::chrono::ceil<std::chrono::microseconds>(end - now);
    context.sleep(awaited, std::min(left, context.needs_polling() ? polling_sleep : longest_sleep));
  }
}

}  // namespace trireme::comm
