#include "comm/mpi/mpi_alarm.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>

namespace trireme::comm {
namespace {

// A look that finds nothing gives the core away where MPI yields when idle, as Open MPI does with more ranks than cores: in
// passing, a rank that computes would lose a time slice with each.
constexpr std::chrono::microseconds between_looks{500};

}  // namespace

struct MpiAlarm::Notice {
  enum Kind : std::int32_t { failure, returned, leaving };

  Kind kind = leaving;
  std::int32_t rank = 0;
  std::int32_t exit_code = 0;
  ErrorCode code = ErrorCode::internal;
  std::uint64_t sequence = 0;
  std::array<char, 2016> text{};
};

struct MpiAlarm::Sent {
  Notice notice;
  std::vector<MPI_Request> requests;
};

MpiAlarm::MpiAlarm(std::shared_ptr<RankContext> context, std::shared_ptr<Wire> wire, const std::vector<int>& neighbours)
    : context_(std::move(context)), wire_(std::move(wire)) {
  for (int rank = 0; rank < size_of(MPI_COMM_WORLD); ++rank) {
    if (std::ranges::find(neighbours, rank) == neighbours.end()) others_.push_back(rank);
  }
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &communicator_), "MPI_Comm_dup");
  context_->add(this);
}

MpiAlarm::~MpiAlarm() {
  context_->remove(this);
  if (!sent_.empty()) new std::list<Sent>(std::move(sent_));  // never freed: MPI may still read them
}

void MpiAlarm::advance() {
  if (others_.empty()) return;
  const auto now = std::chrono::steady_clock::now();
  if (now < next_look_ && !context_->node().failed()) return;
  const Wire::Turn turn = wire_->try_turn();
  if (!turn) return;
  next_look_ = now + between_looks;
  relay_failure();
  for (int arrived = 1; arrived != 0;) {
    MPI_Status status;
    check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, 0, communicator_, &arrived, &status), "MPI_Iprobe");
    if (arrived == 0) break;
    Notice notice;
    check_mpi(MPI_Recv(&notice, sizeof(notice), MPI_BYTE, status.MPI_SOURCE, 0, communicator_, MPI_STATUS_IGNORE), "MPI_Recv");
    take(notice);
  }
  sent_.remove_if([](Sent& sent) {
    int done = 0;
    check_mpi(MPI_Testall(static_cast<int>(sent.requests.size()), sent.requests.data(), &done, MPI_STATUSES_IGNORE),
              "MPI_Testall");
    return done != 0;
  });
}

void MpiAlarm::take(const Notice& notice) {
  if (notice.kind != Notice::failure) {
    (notice.kind == Notice::returned ? returned_ : left_).insert(notice.rank);
    return;
  }
  context_->node().claim_relay();   // its own node tells everyone
  context_->node().claim_report();  // and prints it
  context_->node().record_failure({.rank = notice.rank,
                                   .exit_code = notice.exit_code,
                                   .code = notice.code,
                                   .sequence = notice.sequence,
                                   .text = notice.text.data()});
}

void MpiAlarm::relay_failure() {
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

void MpiAlarm::tell_return() { say_farewell({.kind = Notice::returned, .rank = context_->rank()}); }

void MpiAlarm::leave() { say_farewell({.kind = Notice::leaving, .rank = context_->rank()}); }

// A failure goes first: others would take this rank for one that has done all of its calls.
void MpiAlarm::say_farewell(const Notice& notice) {
  if (others_.empty()) return;
  const Wire::Turn turn = wire_->take_turn();
  relay_failure();
  send(notice);
}

void MpiAlarm::send(const Notice& notice) {
  const Wire::Turn turn = wire_->take_turn();
  Sent& sent = sent_.emplace_back();
  sent.notice = notice;
  sent.requests.assign(others_.size(), MPI_REQUEST_NULL);
  for (std::size_t index = 0; index < others_.size(); ++index) {
    check_mpi(MPI_Isend(&sent.notice, sizeof(Notice), MPI_BYTE, others_[index], 0, communicator_, &sent.requests[index]),
              "MPI_Isend");
  }
}

}  // namespace trireme::comm
