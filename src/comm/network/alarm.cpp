#include "comm/network/alarm.hpp"

#include <algorithm>
#include <utility>

namespace trireme::comm {
namespace {

// Looks are rare because MPI may yield the core when it finds nothing, as Open MPI does with more ranks than cores: a rank that
// computes would lose a time slice with each look.
constexpr std::chrono::microseconds between_looks{500};

}  // namespace

Alarm::Alarm(std::shared_ptr<RankContext> context, std::shared_ptr<Wire> wire, std::vector<int> others)
    : context_(std::move(context)), wire_(std::move(wire)), others_(std::move(others)) {
  context_->add(this);
}

Alarm::~Alarm() { context_->remove(this); }

void Alarm::advance() {
  if (others_.empty()) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_look_ && !context_->node().failed()) return;
  const Wire::Turn turn = wire_->try_turn();
  if (!turn) return;
  next_look_ = now + between_looks;
  relay_failure();
  while (const auto notice = next()) take(*notice);
}

void Alarm::take(const Notice& notice) {
  if (notice.kind != Notice::failure) {
    (notice.kind == Notice::returned ? returned_ : left_).insert(notice.rank);
    return;
  }
  context_->node().claim_relay();   // the failed rank's node informs everyone
  context_->node().claim_report();  // and prints the failure
  context_->node().record_failure({.rank = notice.rank,
                                   .exit_code = notice.exit_code,
                                   .code = notice.code,
                                   .sequence = notice.sequence,
                                   .text = notice.text.data()});
}

void Alarm::relay_failure() {
  NodeControl& node = context_->node();
  if (!node.failed() || !node.claim_relay()) return;
  const Failure first = node.failure();
  Notice notice{.kind = Notice::failure,
                .rank = first.rank,
                .exit_code = first.exit_code,
                .code = first.code,
                .sequence = first.sequence};
  std::copy_n(first.text.data(), std::min(first.text.size(), notice.text.size() - 1), notice.text.data());
  send(notice);
}

void Alarm::tell_return() { say_farewell({.kind = Notice::returned, .rank = context_->rank()}); }

void Alarm::leave() { say_farewell({.kind = Notice::leaving, .rank = context_->rank()}); }

// Sends a failure first: otherwise other ranks would think that this rank has completed all its calls.
void Alarm::say_farewell(const Notice& notice) {
  if (others_.empty()) return;
  const Wire::Turn turn = wire_->take_turn();
  relay_failure();
  send(notice);
}

}  // namespace trireme::comm
