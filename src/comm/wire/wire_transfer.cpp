#include "comm/wire/wire_transfer.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "comm/reduce/reduce.hpp"

namespace trireme::comm {
namespace {

constexpr int most_active_chunks = 64;
constexpr std::chrono::seconds patience{2};

int tag_of(std::uint64_t chunk, std::size_t step) {
  constexpr std::uint64_t chunk_numbers = 1 << 10;  // far more than may be under way
  constexpr std::uint64_t steps = 1 << 10;
  return static_cast<int>(chunk % chunk_numbers * steps + step % steps);
}

}  // namespace

WireTransfer::WireTransfer(WireChannel& channel, const Call& call, std::uint64_t sequence, ChunkedSchedule schedule)
    : channel_(channel), call_(call), sequence_(sequence), schedule_(std::move(schedule)) {}

bool WireTransfer::advance() {
  start_chunks();
  for (Chunk& chunk : active_) {
    while (chunk.step < chunk.schedule.size() && advance(chunk)) {
    }
  }
  while (!active_.empty() && active_.front().step == active_.front().schedule.size()) {
    active_.pop_front();
    --channel_.active_chunks;
    start_chunks();
  }
  return channel_.starting > sequence_ && active_.empty();
}

void WireTransfer::start_chunks() {
  if (channel_.starting != sequence_) return;
  if (next_ == 0) base_ = channel_.chunks;
  while (next_ < schedule_.chunks && channel_.active_chunks < most_active_chunks) {
    active_.push_back({.number = base_ + next_, .schedule = schedule_.schedule(next_), .messages = {}, .received = {}});
    ++next_;
    ++channel_.active_chunks;
  }
  if (next_ < schedule_.chunks) return;
  channel_.chunks = base_ + schedule_.chunks;
  ++channel_.starting;
}

// Advances the current step of a chunk; true when it is done.
bool WireTransfer::advance(Chunk& chunk) {
  const WireStep& step = chunk.schedule[chunk.step];
  if (!chunk.started) start(chunk, step);
  chunk.started = true;
  if (!done(chunk.messages)) return false;
  take(chunk, step);
  chunk.started = false;
  ++chunk.step;
  return true;
}

void WireTransfer::start(Chunk& chunk, const WireStep& step) {
  const int tag = tag_of(chunk.number, chunk.step);
  for (const auto& [peer, range] : step.receives) {
    if (channel_.spare.empty()) channel_.spare.emplace_back();
    chunk.received.push_back(std::move(channel_.spare.back()));
    channel_.spare.pop_back();
    std::vector<std::byte>& buffer = chunk.received.back();
    buffer.resize(bytes_of(range));
    if (buffer.empty()) continue;
    channel_.transport->receive({.channel = channel_.channel, .peer = peer, .tag = tag}, buffer, chunk.messages);
  }
  for (const auto& [peer, range] : step.sends) {
    if (range.count() == 0) continue;
    if (!channel_.on_my_node[static_cast<std::size_t>(peer)]) channel_.bytes_sent += bytes_of(range);
    channel_.transport->post({.channel = channel_.channel, .peer = peer, .tag = tag}, {at(range.begin), bytes_of(range)},
                             chunk.messages);
  }
}

void WireTransfer::take(Chunk& chunk, const WireStep& step) {
  if (step.reduces && !step.receives.empty()) {
    const Range range = step.receives.front().range;
    std::vector<const std::byte*> from;
    for (const auto& buffer : chunk.received) from.push_back(buffer.data());
    from.insert(from.begin() + static_cast<std::ptrdiff_t>(step.place), at(range.begin));
    std::byte* to = at(range.begin);
    reduce(call_.arithmetic(), call_.dtype, from, {&to, 1}, static_cast<std::size_t>(range.count()));
  } else {
    for (std::size_t index = 0; index < step.receives.size(); ++index) {
      const std::vector<std::byte>& buffer = chunk.received[index];
      if (!buffer.empty()) std::memcpy(at(step.receives[index].range.begin), buffer.data(), buffer.size());
    }
  }
  std::ranges::move(chunk.received, std::back_inserter(channel_.spare));
  chunk.received.clear();
}

// Receives write to the transfer's own buffers, so only sends use the caller's memory.
void WireTransfer::stop() noexcept {
  const auto end = std::chrono::steady_clock::now() + patience;
  bool untouched = true;
  for (Chunk& chunk : active_) untouched = channel_.transport->cancel(chunk.messages, end) && untouched;
  if (!untouched) new std::deque<Chunk>(std::move(active_));  // never freed: the network may still write to the buffers
  active_.clear();
}

std::byte* WireTransfer::at(std::int64_t element) const {
  return static_cast<std::byte*>(call_.data) + static_cast<std::size_t>(element) * size_of(call_.dtype);
}

std::size_t WireTransfer::bytes_of(Range range) const { return static_cast<std::size_t>(range.count()) * size_of(call_.dtype); }

}  // namespace trireme::comm
