#include "comm/nccl/nccl_backend.hpp"

#include <fmt/format.h>

#include <thread>
#include <utility>

#include "comm/nccl/collectives.hpp"
#include "comm/nccl/registered_memory.hpp"

namespace trireme::comm {
namespace {

using Clock = std::chrono::steady_clock;

// Gives other reports time to come first: a waiting rank knows more than the watchdog about what is missing, and a failed rank
// more than NCCL about its failure.
constexpr std::chrono::milliseconds watchdog_patience{1000};

class NcclOperation final : public Operation {
 public:
  NcclOperation(std::shared_ptr<NcclBackend> group, std::shared_ptr<NcclFlight> flight)
      : group_(std::move(group)), flight_(std::move(flight)) {}

  RankContext& context() override { return group_->context(); }
  bool ready() override { return flight_->done || flight_->completion->captured(); }
  void check_peers() override {
    if (flight_->comparison != nullptr) flight_->comparison->check_peers();
  }
  ErrorFields describe_wait() const override { return group_->describe_wait(*flight_); }
  bool order_before_current() override {
    flight_->completion->order_before_current();
    return true;
  }
  void abandon() noexcept override { group_->abandon(*flight_); }

 private:
  std::shared_ptr<NcclBackend> group_;
  std::shared_ptr<NcclFlight> flight_;
};

ncclUniqueId share_id(const NcclApi& api, Backend& host) {
  ncclUniqueId id{};
  if (host.members().me == 0) {
    const ncclResult_t result = api.get_unique_id(&id);
    if (result != ncclSuccess) throw nccl_error(api, result, nullptr, "ncclGetUniqueId");
  }
  start(host, trireme::Call{.kind = CallKind::broadcast, .data = &id, .count = sizeof(id), .name = "NCCL's id"}).wait_on_host();
  return id;
}

}  // namespace

NcclBackend::NcclBackend(std::shared_ptr<Backend> host, NcclParts parts)
    : StagedBackend(std::move(host), parts.make_stream),
      parts_(std::move(parts)),
      context_(host_backend(), &host_backend()->context()) {
  if (members().size() == 1) return;
  communicator_ = std::make_shared<Communicator>(parts_.api, context_, members(), share_id(*parts_.api, *host_backend()));
  context_->add(this);
  parts_.watchdog->add(*this);
}

NcclBackend::~NcclBackend() {
  if (communicator_ == nullptr) return;
  communicator_->close();  // while the watchdog still watches
  parts_.watchdog->remove(*this);
  context_->remove(this);
}

std::unique_ptr<Operation> NcclBackend::start(const Call& call) {
  const bool by_nccl = members().size() > 1 && nccl_has(call) && stream()->reaches(call.data);
  return by_nccl ? start_on_gpu(call) : StagedBackend::start(call);
}

std::unique_ptr<Operation> NcclBackend::start_on_gpu(const Call& call) {
  advance();
  context_->check_failure();
  const auto flight = std::make_shared<NcclFlight>();
  flight->call = call;
  flight->name = fmt::format("{}{}on the GPU", call.name, call.name.empty() ? "" : " ");
  flight->call.name = flight->name;
  Call comparison = comparison_of(flight->call);
  comparison.data = nullptr;
  comparison.flight_number = 0;  // finish_oldest() ends the entry, when the data are there
  flight->comparison = host_backend()->start(comparison);
  stream()->order_after_current();
  communicator_->enqueue(describe(flight->call), [&](ncclComm_t communicator) {
    return put(*parts_.api, call,
               {.rank = members().me, .size = members().size(), .communicator = communicator, .stream = stream()->native()});
  });
  flight->completion = stream()->completion();
  {
    const std::lock_guard lock(mutex_);
    flights_.push_back(flight);
  }
  return std::make_unique<NcclOperation>(shared_from_this(), flight);
}

std::shared_ptr<device::MemoryResource> NcclBackend::memory() {
  return std::make_shared<RegisteredMemory>(parts_.api, stream(), communicator_);
}

std::shared_ptr<Backend> NcclBackend::make_group(const Members& members) {
  return std::make_shared<NcclBackend>(host_backend()->make_group(members), parts_);
}

void NcclBackend::advance() {
  while (!flights_.empty() && finish_oldest()) {
  }
}

bool NcclBackend::finish_oldest() {
  NcclFlight& flight = *flights_.front();
  if (flight.comparison != nullptr && !flight.comparison->ready()) return false;
  flight.comparison.reset();
  if (!flight.completion->reached()) return false;
  flight.done = true;
  if (FlightRecorder* recorder = context_->flight()) recorder->finish(flight.call.flight_number);
  const std::lock_guard lock(mutex_);
  flights_.pop_front();
  return true;
}

ErrorFields NcclBackend::describe_wait(const NcclFlight& flight) const {
  if (flight.comparison != nullptr) return flight.comparison->describe_wait();
  return {.message = fmt::format("{} of group \"{}\"; all ranks have called it", describe(flight.call), members().label),
          .hint = "a GPU is busy with earlier work, or NCCL can't move the data: NCCL_DEBUG=INFO shows more"};
}

void NcclBackend::abandon(NcclFlight& flight) noexcept {
  if (flight.done) return;
  if (!flight.completion->captured()) communicator_->abort();
  if (flight.comparison != nullptr) flight.comparison->abandon();
  const auto end = Clock::now() + abort_patience;
  try {
    while (!flight.completion->reached() && Clock::now() < end) std::this_thread::sleep_for(abort_nap);
  } catch (const Error&) {  // the GPU has failed: nothing runs on it any more
  }
}

void NcclBackend::look(Clock::time_point now) noexcept {
  try {
    stream()->use_on_this_thread();
    watch_nccl(now);
    watch(now);
  } catch (const Error& error) {
    context_->record_failure(error);
  }
  if (context_->node().failed()) communicator_->abort();
}

void NcclBackend::watch_nccl(Clock::time_point now) {
  const std::optional<Error> error = communicator_->failure();
  if (!error) return;
  if (!error_since_) error_since_ = now;
  if (now - *error_since_ >= watchdog_patience) throw *error;
}

void NcclBackend::watch(Clock::time_point now) {
  std::shared_ptr<NcclFlight> oldest;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& flight : flights_) {
      if (flight->completion->reached()) continue;
      oldest = flight;
      break;
    }
  }
  if (oldest != oldest_) oldest_since_ = now;
  oldest_ = oldest;
  if (oldest == nullptr || now - oldest_since_ < context_->deadline() + watchdog_patience) return;
  throw Error({.code = ErrorCode::timeout,
               .message = fmt::format("no progress on the GPU for {} ms: {} of group \"{}\"", context_->deadline().count(),
                                      describe(oldest->call), members().label),
               .rank = context_->rank(),
               .hint = "a rank has not called it, or its GPU is busy with earlier work"});
}

}  // namespace trireme::comm
