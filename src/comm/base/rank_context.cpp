#include "comm/base/rank_context.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include "comm/flight/flight_signals.hpp"
#include "core/process.hpp"
#include "trireme/comm/base/group.hpp"
#include "trireme/core/exit_code.hpp"
#include "trireme/core/log.hpp"

namespace trireme::comm {
namespace {

thread_local RankContext* current = nullptr;

Failure failure_of(const Error& error, int rank) {
  const int where = error.fields().rank;
  return {.rank = where >= 0 ? where : rank,
          .exit_code = static_cast<int>(exit_code_of(error.code())),
          .code = error.code(),
          .sequence = error.fields().sequence,
          .text = error.what()};
}

constexpr std::chrono::seconds between_checks{1};

bool has_ended(const NodeControl::OwnProcess& process) {
  static const std::uint64_t machine = this_machine();
  if (process.machine != machine) return false;
  const auto status = status_of(process.id);
  if (!status) return kill(process.id, 0) != 0 && errno == ESRCH;  // without /proc
  return status->start != process.start || status->state == 'Z' || status->state == 'X';
}

// The code as a shell sees it: -1 is 255. A code other than 0 never becomes 0.
int exit_status(int code) {
  constexpr int highest = 255;
  const int status = code & highest;
  return code != 0 && status == 0 ? 1 : status;
}

// The code of an Error; -1 for other exceptions.
int code_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    return static_cast<int>(error.code());
  } catch (...) {
    return -1;
  }
}

}  // namespace

void RankContext::advance() {
  // By index, since advance() may add elements.
  for (std::size_t index = 0; index < active_.size(); ++index) active_[index]->advance();
}

bool RankContext::needs_polling() const {
  for (const Progress* progress : active_) {
    if (progress->needs_polling()) return true;
  }
  return false;
}

void RankContext::sleep(Awaited& awaited, std::chrono::microseconds timeout) {
  struct Announced {
    RankContext& context;
    std::uint32_t seen = context.node().announce_sleep(context.node_rank());
    ~Announced() { context.node().end_sleep(context.node_rank()); }
  };
  const Announced announced{*this};
  advance();
  wake_others();
  if (awaited.ready() || node_->failed()) return;
  awaited.check_peers();
  node_->sleep(place_.node_rank, announced.seen, timeout);
}

void RankContext::throw_failure() const {
  const Failure failure = node_->failure();
  // A mismatch between ranks is every rank's failure, no matter which rank noticed it.
  const bool shared = failure.code == ErrorCode::rank_mismatch;
  throw Error({.code = shared ? ErrorCode::rank_mismatch : ErrorCode::peer_failed,
               .message = fmt::format("rank {} failed: {}", failure.rank, failure.text),
               .rank = failure.rank,
               .sequence = failure.sequence});
}

void RankContext::note_process() {
  const auto process = static_cast<std::int32_t>(getpid());
  const auto status = status_of(process);
  if (!status) return;  // without /proc
  node_->note_process(place_.node_rank,
                      {.world_rank = place_.rank, .id = process, .start = status->start, .machine = this_machine()});
}

void RankContext::check_neighbours(std::chrono::steady_clock::time_point now) {
  if (now < next_check_) return;
  next_check_ = now + between_checks;
  for (int rank = 0; rank < node_->ranks(); ++rank) {
    const auto process = node_->process(rank);
    if (!process || rank == place_.node_rank || node_->left(rank) || !has_ended(*process)) continue;
    if (node_->left(rank)) continue;  // it left meanwhile
    return record_lost_process(process->world_rank);
  }
}

void RankContext::record_lost_process(int rank) {
  node_->record_failure({.rank = rank,
                         .exit_code = static_cast<int>(ExitCode::failure),
                         .code = ErrorCode::peer_failed,
                         .text = "its process has ended without a word: by SIGKILL, _exit or a crash"});
}

bool RankContext::record_failure(const Error& error) { return node_->record_failure(failure_of(error, place_.rank)); }

Failure RankContext::describe(const std::exception_ptr& failure) const {
  try {
    std::rethrow_exception(failure);
  } catch (const Error& error) {
    return failure_of(error, place_.rank);
  } catch (const std::bad_alloc&) {
    return {.rank = place_.rank,
            .exit_code = static_cast<int>(ExitCode::out_of_memory),
            .code = ErrorCode::out_of_memory,
            .text = "there is not enough memory"};
  } catch (const std::exception& error) {
    return {.rank = place_.rank, .text = error.what()};
  } catch (...) {
    return {.rank = place_.rank, .text = "an exception that is no std::exception"};
  }
}

void RankContext::end(const std::exception_ptr& failure) {
  const Failure described = describe(failure);
  node_->record_failure(described);
  if (flight_ == nullptr) return;
  flight_->end(
      {.exit_code = described.exit_code, .error_code = code_of(failure), .rank = described.rank, .text = described.text});
}

int RankContext::conclude(int code) {
  code = exit_status(code);
  if (!node_->failed()) return code;
  const Failure first = node_->failure();
  if (node_->claim_report()) log(Severity::error, "rank {} failed: {}", first.rank, first.text);
  return std::max(code, first.exit_code);
}

void RankContext::leave() { node_->leave(place_.node_rank); }

RankContext* current_rank() { return current; }

CurrentRank::CurrentRank(RankContext& context) : before_(current) { current = &context; }
CurrentRank::~CurrentRank() { current = before_; }

void progress() {
  if (current == nullptr) return;
  current->advance();
  current->wake_others();
  current->check_failure();
}

}  // namespace trireme::comm
