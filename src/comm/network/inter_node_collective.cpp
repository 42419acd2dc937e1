#include "comm/network/inter_node_collective.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <utility>

#include "comm/reduce/reduce.hpp"

namespace trireme::comm {

struct InterNodeCollective::Envelope {
  WrittenCall call;
  alignas(64) std::array<std::byte, small_bytes> elements;
};

namespace {

int tag_of(std::uint64_t sequence) { return static_cast<int>(sequence % (1 << 20)); }

}  // namespace

InterNodeCollective::InterNodeCollective(Lane& lane, Work work)
    : lane_(lane),
      work_(std::move(work)),
      transfer_(lane.data, work_.call, work_.sequence, work_.schedule),
      envelopes_(lane.peers.size()),
      receives_(lane.peers.size()) {}

InterNodeCollective::~InterNodeCollective() = default;

bool InterNodeCollective::advance() {
  if (!announced_) {
    if (work_.small.count() > 0 && !released_.load(std::memory_order_acquire)) return false;
    announce();
  }
  if (!compared_ && !compare()) return false;
  if (!released_.load(std::memory_order_acquire)) return false;
  return transfer_.advance() && done(sends_);
}

void InterNodeCollective::announce() {
  announced_ = true;
  if (lane_.peers.empty()) return;
  const auto mine = static_cast<std::size_t>(lane_.node);
  Envelope& envelope = envelopes_[mine];
  envelope.call = write_call(work_.call, work_.sequence);
  const std::size_t element = size_of(work_.call.dtype);
  const std::size_t bytes = static_cast<std::size_t>(work_.small.count()) * element;
  if (bytes > 0) {
    const auto* own = static_cast<const std::byte*>(work_.call.data) + static_cast<std::size_t>(work_.small.begin) * element;
    std::memcpy(envelope.elements.data(), own, bytes);
  }
  const int tag = tag_of(work_.sequence);
  const std::size_t size = offsetof(Envelope, elements) + bytes;
  for (std::size_t node = 0; node < lane_.peers.size(); ++node) {
    if (node == mine) continue;
    const Route route{.channel = lane_.calls, .peer = lane_.peers[node], .tag = tag};
    lane_.data.transport->receive(route, std::as_writable_bytes(std::span(&envelopes_[node], 1)), receives_[node]);
    lane_.data.transport->post(route, std::as_bytes(std::span(&envelope, 1)).first(size), sends_);
    lane_.data.bytes_sent += size;
  }
}

bool InterNodeCollective::compare() {
  for (const Batch& receive : receives_) {
    if (!done(receive)) return false;
  }
  compared_ = true;
  for (const Envelope& envelope : envelopes_) {
    if (!same(envelope.call, envelopes_[static_cast<std::size_t>(lane_.node)].call)) differs_.store(true);
  }
  require(!differs(), "the nodes disagree");  // the backend replaces this by an error that names the ranks
  if (work_.small.count() > 0) reduce_small();
  return true;
}

void InterNodeCollective::reduce_small() {
  std::vector<const std::byte*> from;
  for (const Envelope& envelope : envelopes_) from.push_back(envelope.elements.data());
  std::byte* to =
      static_cast<std::byte*>(work_.call.data) + static_cast<std::size_t>(work_.small.begin) * size_of(work_.call.dtype);
  reduce(work_.call.arithmetic(), work_.call.dtype, from, {&to, 1}, static_cast<std::size_t>(work_.small.count()));
}

std::vector<std::optional<WrittenCall>> InterNodeCollective::calls() {
  std::vector<std::optional<WrittenCall>> calls(lane_.peers.size());
  for (std::size_t node = 0; node < calls.size(); ++node) {
    const bool arrived = receives_[node].outstanding == 0 && !receives_[node].failure;
    if (announced_ && !stopped_ && arrived) calls[node] = envelopes_[node].call;
  }
  return calls;
}

void InterNodeCollective::stop() noexcept {
  transfer_.stop();
  stopped_ = !compared_;
  const auto now = std::chrono::steady_clock::now();
  bool untouched = lane_.data.transport->cancel(sends_, now);
  for (Batch& receive : receives_) untouched = lane_.data.transport->cancel(receive, now) && untouched;
  // Never freed: the network may still use them.
  if (!untouched) envelopes_ = *new std::vector<Envelope>(std::move(envelopes_));
}

}  // namespace trireme::comm
