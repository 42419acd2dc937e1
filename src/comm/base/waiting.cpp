#include "comm/base/waiting.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "comm/base/rank_context.hpp"

namespace trireme::comm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int spins = 400;  // about 20 us, from the last progress on
constexpr std::chrono::microseconds yield_time{200};
constexpr std::chrono::microseconds longest_sleep = std::chrono::milliseconds(100);
constexpr std::chrono::microseconds polling_sleep{250};  // while a network library needs calls to advance
constexpr int last_looks = 20;                           // checks after the deadline, for a process that was stopped meanwhile

void pause_core() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

constexpr std::chrono::milliseconds long_wait{150};  // after this time a rank notes in which call it waits

// What the other ranks do, also in other groups: "; rank 1 waits in #7 barrier of group "world", rank 2 does not wait".
std::string waits_of_others(const RankContext& context) {
  if (!context.shares_all() || context.deadline() < 2 * long_wait) return {};
  std::string text;
  for (int rank = 0; rank < context.node().ranks(); ++rank) {
    if (rank == context.rank()) continue;
    text += text.empty() ? "; " : ", ";
    const auto wait = context.node().wait_of(rank);
    if (wait) {
      text += fmt::format("rank {} waits in {}", rank, *wait);
    } else {
      text += fmt::format("rank {} {}", rank, context.node().left(rank) ? "has left" : "does not wait");
    }
  }
  return text;
}

[[noreturn]] void miss_deadline(RankContext& context, const Awaited& awaited) {
  ErrorFields fields = awaited.describe_wait();
  fields.code = ErrorCode::timeout;
  fields.message =
      fmt::format("no progress for {} ms: {}{}", context.deadline().count(), fields.message, waits_of_others(context));
  fields.rank = context.rank();
  const Error error(std::move(fields));
  // The other ranks can't finish this collective either. If one has reported its deadline before, throws its error.
  if (!context.record_failure(error)) context.check_failure();
  throw error;
}

// Notes in the flight recorder what this rank waits for. The note stays after an error.
class NotedWait {
 public:
  NotedWait(FlightRecorder* flight, const Awaited& awaited) : flight_(flight), number_(awaited.flight_number) {}

  void begin(Clock::time_point now) {
    if (flight_ != nullptr && !begun_) flight_->begin_wait(number_, now);
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

// Proves that no rank of the job can go on: each has waited long or has left. It takes two looks between which all ranks check
// too and no rank changes anything.
class StandstillCheck {
 public:
  StandstillCheck(RankContext& context, const Awaited& awaited) : context_(context), awaited_(awaited) {}
  ~StandstillCheck() {
    if (noted_) context_.node().end_wait(context_.node_rank());
  }
  StandstillCheck(const StandstillCheck&) = delete;
  StandstillCheck& operator=(const StandstillCheck&) = delete;

  // Call it when this rank has just checked and still waits.
  void look(Clock::time_point now) {
    if (!context_.shares_all()) return;
    if (!begin_) begin_ = now;
    if (now - *begin_ < long_wait) return;
    NodeControl& node = context_.node();
    if (!std::exchange(noted_, true)) node.note_wait(context_.node_rank(), awaited_.wait_text());
    if (context_.needs_polling()) return;  // messages may be on their way
    node.note_look(context_.node_rank());
    const auto seen = node.standstill();
    if (seen && before_ && before_->proven_by(*seen)) report(*seen);
    if (!seen || !before_ || seen->changes != before_->changes || seen->waits != before_->waits) before_ = seen;
  }

 private:
  [[noreturn]] void report(const NodeControl::Standstill& seen) {
    std::string text;
    for (std::size_t rank = 0; rank < seen.waits.size(); ++rank) {
      text += rank == 0 ? "" : ", ";
      text += seen.waits[rank] == 0 ? fmt::format("rank {} has left", rank)
                                    : fmt::format("rank {} waits in {}", rank,
                                                  context_.node().wait_of(static_cast<int>(rank)).value_or("something"));
    }
    const Error error({.code = ErrorCode::rank_mismatch,
                       .message = fmt::format("no rank can go on: {}", text),
                       .rank = context_.rank(),
                       .hint = "all ranks must call the collectives of all their groups in the same order"});
    if (!context_.record_failure(error)) context_.check_failure();
    throw error;
  }

  RankContext& context_;
  const Awaited& awaited_;
  bool noted_ = false;
  std::optional<Clock::time_point> begin_;
  std::optional<NodeControl::Standstill> before_;
};

}  // namespace

void wait_for(RankContext& context, Awaited& awaited) {
  const int spin_limit = context.shares_cores() ? 0 : spins;
  Clock::time_point begin{};
  NotedWait noted(context.flight(), awaited);
  std::optional<StandstillCheck> standstill;  // of a long wait
  int looks_left = last_looks;
  for (int round = 0;; ++round) {
    context.advance();
    const bool ready = awaited.ready();
    const bool progressed = context.wake_others();
    if (ready) return noted.end();
    if (progressed) round = 0;
    context.check_failure();
    awaited.check_peers();
    if (round < spin_limit) {
      pause_core();
      continue;
    }
    const auto now = Clock::now();
    if (round == spin_limit) {
      begin = now;
      noted.begin(now);
      standstill.emplace(context, awaited);
    }
    const auto waited = now - begin;
    if (waited >= context.deadline() && looks_left-- == 0) miss_deadline(context, awaited);
    if (waited < yield_time) {
      sched_yield();
      continue;
    }
    noted.go_on(now);
    context.check_neighbours(now);
    standstill->look(now);
    const auto left = std::chrono::ceil<std::chrono::microseconds>(context.deadline() - waited);
    context.sleep(awaited, std::clamp(left, polling_sleep, context.needs_polling() ? polling_sleep : longest_sleep));
  }
}

}  // namespace trireme::comm
