#include "comm/shared/segment_backend.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <chrono>

#include "comm/calls/mismatch.hpp"
#include "comm/shared/segment_part.hpp"

namespace trireme::comm {
namespace {

constexpr std::uint64_t slots = GroupControl::slots;
constexpr std::size_t long_work = std::size_t{64} << 10;  // from this many bytes on the flight recorder notes the start

class SegmentOperation final : public Operation {
 public:
  // `shared`: other ranks read or write this rank's data.
  SegmentOperation(std::shared_ptr<SegmentBackend> group, std::uint64_t sequence, bool shared)
      : group_(std::move(group)), sequence_(sequence), shared_(shared) {}

  RankContext& context() override { return group_->context(); }
  bool ready() override { return shared_ ? group_->done_by_all(sequence_) : group_->done(sequence_); }
  void check_peers() override { group_->check_peers(sequence_); }
  ErrorFields describe_wait() const override { return group_->describe_wait(sequence_); }
  std::string wait_text() const override { return group_->describe_call(sequence_); }
  void abandon() noexcept override { group_->abandon(sequence_); }

 private:
  std::shared_ptr<SegmentBackend> group_;
  std::uint64_t sequence_;
  bool shared_;
};

}  // namespace

SegmentBackend::SegmentBackend(std::shared_ptr<RankContext> context, std::shared_ptr<Platform> platform, Members members,
                               Shared shared, std::unique_ptr<Mail> mail)
    : context_(std::move(context)),
      platform_(std::move(platform)),
      members_(std::move(members)),
      shared_(std::move(shared)),
      mail_(std::move(mail)),
      small_all_reduce_(shared_.control, members_.size(), members_.me),
      staging_(shared_.control, *context_, shared_.node_ranks, members_.me),
      calls_(slots),
      blocks_(members_.ranks.size()) {
  context_->add(this);
}

SegmentBackend::~SegmentBackend() { context_->remove(this); }

std::unique_ptr<Operation> SegmentBackend::receive(const Call& message) { return mail_->receive(message); }
void SegmentBackend::send(const Call& message) { mail_->send(message); }
std::shared_ptr<device::MemoryResource> SegmentBackend::memory() { return platform_->memory(shared_from_this()); }
std::shared_ptr<Backend> SegmentBackend::make_group(const Members& members) {
  return platform_->make_group(shared_from_this(), members);
}

std::unique_ptr<Operation> SegmentBackend::start(const Call& call) {
  const std::uint64_t sequence = published_ + 1;
  if (sequence > slots && !done_by_all(sequence - slots)) {
    SegmentOperation oldest(shared_from_this(), sequence - slots, true);
    oldest.flight_number = calls_[sequence % slots].flight_number;
    wait_for(*context_, oldest);
  }
  const Address address = platform_->addresses().publish(call.data, call.bytes(), members_.ranks);
  calls_[sequence % slots] = call;
  const bool carried = small_all_reduce_.carry(call);
  if (carried && parcel_is_free(sequence)) small_all_reduce_.fill(call, sequence);
  auto operation =
      std::make_unique<SegmentOperation>(shared_from_this(), sequence, !carried && call.work() != CallKind::barrier);
  shared_.control.call(members_.me, sequence).publish(call, address, sequence);
  published_ = sequence;
  shared_.control.progress(members_.me).published.store(sequence, std::memory_order_relaxed);
  context_->changed(shared_.node_ranks);
  context_->wake_others();
  shared_.control.call(members_.me, sequence + 1).prepare();
  return operation;
}

void SegmentBackend::advance() {
  while (next_ <= published_) {
    if (mismatch_) throw *mismatch_;
    if (!all_published()) return;
    const Call& call = calls_[next_ % slots];
    if (!compared_) {
      compare_calls();
      gather_addresses(call);
      compared_ = true;
      FlightRecorder* flight = context_->flight();
      if (flight != nullptr && call.bytes() >= long_work) flight->start(call.flight_number);
    }
    if (!work_on(call)) return;
    finish_call();
  }
}

bool SegmentBackend::all_published() {
  while (seen_ < members_.size() && shared_.control.call(seen_, next_).holds(next_)) ++seen_;
  return seen_ == members_.size();
}

void SegmentBackend::compare_calls() {
  const PublishedCall& mine = shared_.control.call(members_.me, next_);
  for (int rank = 0; rank < members_.size(); ++rank) {
    if (shared_.control.call(rank, next_).same_as(mine)) continue;
    std::vector<std::string> calls;
    for (int other = 0; other < members_.size(); ++other) {
      calls.push_back(shared_.control.call(other, next_).describe(next_).value_or("something else"));
    }
    mismatch_ = mismatch_error(calls, members_, next_);
    throw *mismatch_;
  }
}

void SegmentBackend::gather_addresses(const Call& call) {
  if (call.count == 0) return;
  for (int rank = 0; rank < members_.size(); ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    const Address address = shared_.control.call(rank, next_).address();
    blocks_[index] = address.segment == 0 ? nullptr : platform_->addresses().reach(address, members_.ranks[index]);
  }
}

bool SegmentBackend::work_on(const Call& call) {
  if (context_->node().failed()) return false;
  if (call.count == 0) return true;
  if (call.work() == CallKind::barrier) return true;
  if (small_all_reduce_.carry(call)) return work_on_parcels(call);
  const bool staged = call.work() == CallKind::broadcast ? blocks_[static_cast<std::size_t>(call.source())] == nullptr
                                                         : std::ranges::find(blocks_, nullptr) != blocks_.end();
  if (staged) return staging_.advance(call, blocks_);
  const Working working(shared_.control.progress(members_.me));
  if (context_->node().failed()) return false;
  blocks_[static_cast<std::size_t>(members_.me)] = static_cast<std::byte*>(call.data);
  do_my_part({.call = call,
              .me = members_.me,
              .range = {0, static_cast<std::int64_t>(call.count)},
              .from = {const_cast<const std::byte* const*>(blocks_.data()), blocks_.size()},
              .to = blocks_});
  return true;
}

bool SegmentBackend::parcel_is_free(std::uint64_t sequence) {
  return sequence <= GroupControl::parcels || done_by_all(sequence - GroupControl::parcels);
}

bool SegmentBackend::work_on_parcels(const Call& call) {
  if (!shared_.control.call(members_.me, next_).has_parcel(next_)) {
    if (!parcel_is_free(next_)) return false;
    small_all_reduce_.fill(call, next_);
    context_->changed(shared_.node_ranks);
  }
  if (!small_all_reduce_.all_filled(next_)) return false;
  small_all_reduce_.reduce(call, next_);
  return true;
}

void SegmentBackend::finish_call() {
  shared_.control.progress(members_.me).finished.store(next_, std::memory_order_release);
  if (FlightRecorder* flight = context_->flight()) flight->finish(calls_[next_ % slots].flight_number);
  context_->changed(shared_.node_ranks);
  ++next_;
  seen_ = 0;
  compared_ = false;
}

bool SegmentBackend::done_by_all(std::uint64_t sequence) {
  if (sequence <= all_finished_) return true;
  if (sequence >= next_) return false;
  std::uint64_t lowest = next_ - 1;
  for (int rank = 0; rank < members_.size(); ++rank) {
    lowest = std::min(lowest, shared_.control.progress(rank).finished.load());
    if (lowest < sequence) return false;
  }
  all_finished_ = lowest;
  return true;
}

void SegmentBackend::check_peers(std::uint64_t sequence) const {
  for (int rank = 0; rank < members_.size(); ++rank) {
    const auto index = static_cast<std::size_t>(rank);
    if (!context_->node().returned(shared_.node_ranks[index])) continue;
    if (shared_.control.progress(rank).finished.load() >= sequence) continue;
    context_->check_failure();
    ErrorFields fields = describe_wait(sequence);
    fields.code = ErrorCode::peer_failed;
    fields.rank = members_.ranks[index];
    fields.message = fmt::format("rank {} left the group \"{}\" while rank {} waits for it in {}", fields.rank, members_.label,
                                 context_->rank(), fields.message);
    const Error error(std::move(fields));
    context_->record_failure(error);  // the others can't finish either
    throw error;
  }
}

std::string SegmentBackend::describe_call(std::uint64_t sequence) const {
  const auto call = shared_.control.call(members_.me, sequence).describe(sequence);
  return fmt::format("{} of group \"{}\"", call.value_or("a collective"), members_.label);
}

ErrorFields SegmentBackend::describe_wait(std::uint64_t sequence) const {
  std::string where;
  for (int rank = 0; rank < members_.size(); ++rank) where += (rank == 0 ? "" : ", ") + describe_progress(rank);
  return {.message = fmt::format("{}; {}", describe_call(sequence), where),
          .sequence = sequence,
          .hint = "a rank that is behind is busy elsewhere, or took another path through the program"};
}

std::string SegmentBackend::describe_progress(int rank) const {
  const RankProgress& progress = shared_.control.progress(rank);
  const std::uint64_t published = progress.published.load();
  const int world_rank = members_.ranks[static_cast<std::size_t>(rank)];
  if (published == 0) return fmt::format("rank {} has called nothing yet", world_rank);
  const auto call = shared_.control.call(rank, published).describe(published);
  return fmt::format("rank {} last called {} and has finished #{}", world_rank, call.value_or(fmt::format("#{}", published)),
                     progress.finished.load());
}

void SegmentBackend::abandon(std::uint64_t sequence) noexcept {
  if (mismatch_ && next_ <= sequence) return;  // no rank starts on it
  const NodeControl& node = context_->node();
  // A rank that sees the failure starts no more work; one that is working finishes, unless it was killed.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (!done_by_all(sequence) && std::chrono::steady_clock::now() < end) {
    if (node.failed() && !anyone_working()) return;
    sched_yield();
  }
}

bool SegmentBackend::anyone_working() const {
  for (int rank = 0; rank < members_.size(); ++rank) {
    if (shared_.control.progress(rank).working.load() != 0) return true;
  }
  return false;
}

}  // namespace trireme::comm
