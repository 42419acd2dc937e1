#include "comm/mpi/mpi_outbox.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "comm/calls/members.hpp"

namespace trireme::comm {

class MpiOutbox::Delivery final : public Polled {
 public:
  explicit Delivery(MpiOutbox& outbox) : Polled(*outbox.context_), outbox_(outbox) {}

  bool ready() override {
    return std::ranges::all_of(outbox_.sends_,
                               [this](const Unfinished& sent) { return outbox_.receives_nothing_more(sent.receiver); });
  }
  ErrorFields describe_wait() const override {
    std::vector<int> receivers;
    for (const Unfinished& sent : outbox_.sends_) receivers.push_back(sent.receiver.rank);
    std::ranges::sort(receivers);
    const auto again = std::ranges::unique(receivers);
    receivers.erase(again.begin(), again.end());
    return {.message = fmt::format("main has returned on rank {}, whose messages {} not received", outbox_.context_->rank(),
                                   list_of_ranks(receivers) + (receivers.size() == 1 ? " has" : " have")),
            .hint = "a rank that is behind is busy elsewhere, or took another path through the program"};
  }

 private:
  MpiOutbox& outbox_;
};

MpiOutbox::MpiOutbox(std::shared_ptr<RankContext> context, std::shared_ptr<Wire> wire, std::shared_ptr<MpiAlarm> alarm)
    : context_(std::move(context)), wire_(std::move(wire)), alarm_(std::move(alarm)) {
  context_->add(this);
}

MpiOutbox::~MpiOutbox() {
  context_->remove(this);
  // Never freed: MPI may still read messages that no rank received, and write messages that arrive.
  for (auto* messages : {&sends_, &abandoned_}) {
    if (!messages->empty()) new std::list<Unfinished>(std::move(*messages));
  }
}

void MpiOutbox::add_send(std::vector<std::byte> envelope, MPI_Request request, Correspondent receiver) {
  sends_.push_back({.envelope = std::move(envelope), .request = request, .receiver = receiver});
}

void MpiOutbox::add_abandoned_receive(std::vector<std::byte> envelope, MPI_Request request) {
  abandoned_.push_back({.envelope = std::move(envelope), .request = request});
}

void MpiOutbox::drain() {
  context_->node().note_return(context_->node_rank());
  alarm_->tell_return();
  if (context_->node().failed()) return;
  try {
    Delivery(*this).wait();
  } catch (const Error& error) {
    context_->record_failure(error);
  }
}

void MpiOutbox::advance() {
  if (sends_.empty() && abandoned_.empty()) return;
  const Wire::Turn turn = wire_->try_turn();
  if (!turn) return;
  remove_finished(sends_);
  remove_finished(abandoned_);
}

void MpiOutbox::remove_finished(std::list<Unfinished>& messages) {
  messages.remove_if([](Unfinished& message) {
    int done = 0;
    check_mpi(MPI_Test(&message.request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    return done != 0;
  });
}

bool MpiOutbox::receives_nothing_more(const Correspondent& receiver) const {
  return receiver.node_rank < 0 ? alarm_->returned(receiver.rank) : context_->node().returned(receiver.node_rank);
}

}  // namespace trireme::comm
