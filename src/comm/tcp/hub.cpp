#include "comm/tcp/hub.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "comm/members.hpp"
#include "comm/reduce.hpp"
#include "trireme/core/exit_code.hpp"

namespace trireme::comm {
namespace {

using Data = std::vector<std::byte>;

constexpr std::chrono::seconds longest_silence_of_guest{30};

Data reduce_all(const std::vector<std::optional<Frame>>& calls) {
  const WrittenCall& call = calls.front()->header.call;
  Data result(calls.front()->data.size());
  std::vector<const std::byte*> from;
  for (const auto& one : calls) from.push_back(one->data.data());
  std::byte* to = result.data();
  reduce(call.op, call.dtype, from, {&to, 1}, static_cast<std::size_t>(call.count));
  return result;
}

// What all members get; of a reduce_scatter each its part.
Data compute(const std::vector<std::optional<Frame>>& calls) {
  const FrameHeader& header = calls.front()->header;
  Data result;
  switch (header.work) {
    case Kind::barrier: break;
    case Kind::all_reduce:
    case Kind::reduce_scatter: return reduce_all(calls);
    case Kind::broadcast: return calls[static_cast<std::size_t>(header.call.root)]->data;
    case Kind::all_gather:
      for (const auto& one : calls) result.insert(result.end(), one->data.begin(), one->data.end());
      break;
  }
  return result;
}

std::span<const std::byte> share_of(const Data& result, const FrameHeader& header, int rank, int ranks) {
  if (header.work != Kind::reduce_scatter) return result;
  const Range part = part_of(static_cast<std::int64_t>(header.call.count), rank, ranks);
  const std::size_t size = size_of(header.call.dtype);
  return std::span(result).subspan(static_cast<std::size_t>(part.begin) * size, static_cast<std::size_t>(part.count()) * size);
}

bool all_same(const std::vector<std::optional<Frame>>& calls) {
  const FrameHeader& first = calls.front()->header;
  return std::ranges::all_of(
      calls, [&first](const auto& one) { return same(one->header.call, first.call) && one->header.work == first.work; });
}

// One that the hub finds; rank 0, whose process it is in, prints it.
FrameHeader failure_of(int rank, ErrorCode code) {
  return {.kind = FrameKind::failure, .rank = rank, .exit_code = static_cast<std::int32_t>(exit_code_of(code)), .code = code};
}

std::string with_verb(const std::vector<int>& ranks) { return list_of_ranks(ranks) + (ranks.size() == 1 ? " has" : " have"); }

}  // namespace

Hub::Hub(Socket listener, int ranks, std::chrono::milliseconds deadline)
    : listener_(std::move(listener)),
      deadline_(deadline),
      ranks_(static_cast<std::size_t>(ranks)),
      thread_([this](const std::stop_token& stop) { serve(stop); }) {}

void Hub::serve(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    std::vector<int> descriptors{listener_.descriptor()};
    for (const Guest& guest : guests_) descriptors.push_back(guest.socket.descriptor());
    const std::size_t first_rank = descriptors.size();
    std::vector<int> senders;
    for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
      if (!has_come(rank)) continue;
      descriptors.push_back(ranks_[static_cast<std::size_t>(rank)].descriptor());
      senders.push_back(rank);
    }
    const auto arrived = std::make_unique<bool[]>(descriptors.size());
    wait_for_input(descriptors, {arrived.get(), descriptors.size()}, look_interval);
    for (std::size_t index = 0; index < senders.size(); ++index) {
      if (arrived[first_rank + index]) take(senders[index]);
    }
    for (std::size_t index = 1; index < first_rank; ++index) {
      if (arrived[index]) greet(std::move(guests_[index - 1].socket));
    }
    std::erase_if(guests_, [now = Clock::now()](const Guest& guest) {
      return !guest.socket || now - guest.came > longest_silence_of_guest;
    });
    if (arrived[0]) admit();
    if (!met_) give_up_meeting();
    for (auto& [id, collective] : collectives_) remind(id, collective);
  }
}

// Whoever connects and says nothing, a scan of the ports, must not keep the ranks waiting.
void Hub::admit() {
  if (Socket socket = listener_.accept()) guests_.push_back({std::move(socket), Clock::now()});
}

void Hub::greet(Socket socket) {
  const auto frame = receive_frame(socket);
  if (!frame || frame->header.kind != FrameKind::hello) return;  // none of ours
  const int rank = frame->header.rank;
  const int size = static_cast<int>(ranks_.size());
  if (frame->header.size != size || rank < 0 || rank >= size || has_come(rank)) {
    const std::string text = fmt::format("rank {} of {} came where {} ranks meet{}", rank, frame->header.size, size,
                                         rank >= 0 && rank < size && has_come(rank) ? ", and for the second time" : "");
    send_frame(socket, failure_of(rank, ErrorCode::invalid_argument), bytes_of(text));
    return;
  }
  ranks_[static_cast<std::size_t>(rank)] = std::move(socket);
  met_ = std::ranges::all_of(ranks_, [](const Socket& one) { return static_cast<bool>(one); });
  if (met_) send_all({.kind = FrameKind::welcome});
}

void Hub::give_up_meeting() {
  if (Clock::now() - begin_ < deadline_) return;
  std::vector<int> absent;
  for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) {
    if (!has_come(rank) && !left_.contains(rank)) absent.push_back(rank);
  }
  if (absent.empty()) return;
  fail(failure_of(absent.front(), ErrorCode::timeout),
       fmt::format("{} not come within {} ms: look at what started the job", with_verb(absent), deadline_.count()));
  begin_ = Clock::time_point::max() - deadline_;  // said once
}

void Hub::take(int rank) {
  auto frame = receive_frame(ranks_[static_cast<std::size_t>(rank)]);
  if (!frame) {
    ranks_[static_cast<std::size_t>(rank)] = Socket();
    if (!left_.contains(rank)) {
      fail(failure_of(rank, ErrorCode::peer_failed), fmt::format("the process of rank {} is gone", rank));
    }
    return leave(rank);
  }
  const FrameHeader header = frame->header;
  switch (header.kind) {
    case FrameKind::members: {
      std::vector<std::int32_t>& members = members_[header.group];
      members.resize(frame->data.size() / sizeof(std::int32_t));
      std::memcpy(members.data(), frame->data.data(), frame->data.size());
      break;
    }
    case FrameKind::call: take_call(std::move(*frame)); break;
    case FrameKind::letter: send(header.to, header, frame->data); break;
    case FrameKind::failure: fail(header, frame->text()); break;
    case FrameKind::farewell: leave(rank); break;
    default: break;  // the hub's own
  }
}

void Hub::take_call(Frame frame) {
  const CallId id{frame.header.group, frame.header.call.sequence};
  const auto rank = static_cast<std::size_t>(frame.header.rank);
  auto& collective = collectives_[id];
  if (collective.calls.empty()) {
    collective.calls.resize(members_[id.first].size());
    collective.begin = Clock::now();
  }
  collective.calls[rank] = std::move(frame);
  if (std::ranges::all_of(collective.calls, [](const auto& call) { return call.has_value(); })) {
    finish(id, collective);
    collectives_.erase(id);
  } else {
    abandon(id, collective);
  }
}

void Hub::finish(const CallId& id, const Collective& collective) {
  if (!all_same(collective.calls)) {
    std::string lines;
    for (const auto& call : collective.calls) lines += describe(call->header.call) + "\n";
    return send_callers(collective, id, {.kind = FrameKind::mismatch}, bytes_of(lines));
  }
  const Data result = compute(collective.calls);
  const std::vector<std::int32_t>& members = members_[id.first];
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    FrameHeader header{.kind = FrameKind::result, .group = id.first};
    header.call.sequence = id.second;
    send(members[rank], header,
         share_of(result, collective.calls[rank]->header, static_cast<int>(rank), static_cast<int>(members.size())));
  }
}

// So that who misses the deadline can say who is missing.
void Hub::remind(const CallId& id, Collective& collective) {
  if (collective.reminded || Clock::now() - collective.begin < deadline_ / 2) return;
  collective.reminded = true;
  send_callers(collective, id, {.kind = FrameKind::missing}, bytes_of(with_verb(missing(id, collective))));
}

void Hub::leave(int rank) {
  if (!left_.insert(rank).second) return;
  for (const auto& [id, collective] : collectives_) abandon(id, collective);
  send_all({.kind = FrameKind::farewell, .rank = rank});
}

// A call that a rank has not made before it left never ends.
void Hub::abandon(const CallId& id, const Collective& collective) {
  for (const int rank : missing(id, collective)) {
    if (left_.contains(rank)) return send_callers(collective, id, {.kind = FrameKind::abandoned, .rank = rank}, {});
  }
}

// The first is the job's.
void Hub::fail(const FrameHeader& header, const std::string& text) {
  if (!std::exchange(failed_, true)) send_all(header, bytes_of(text));
}

// Who can't be reached is found to be gone where its frames are taken.
void Hub::send(int rank, const FrameHeader& header, std::span<const std::byte> data) {
  if (rank >= 0 && rank < static_cast<int>(ranks_.size()) && has_come(rank)) {
    send_frame(ranks_[static_cast<std::size_t>(rank)], header, data);
  }
}

void Hub::send_all(const FrameHeader& header, std::span<const std::byte> data) {
  for (int rank = 0; rank < static_cast<int>(ranks_.size()); ++rank) send(rank, header, data);
}

void Hub::send_callers(const Collective& collective, const CallId& id, FrameHeader header, std::span<const std::byte> data) {
  header.group = id.first;
  header.call.sequence = id.second;
  for (std::size_t rank = 0; rank < collective.calls.size(); ++rank) {
    if (collective.calls[rank]) send(members_[id.first][rank], header, data);
  }
}

std::vector<int> Hub::missing(const CallId& id, const Collective& collective) const {
  const std::vector<std::int32_t>& members = members_.at(id.first);
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < members.size(); ++rank) {
    if (!collective.calls[rank]) ranks.push_back(members[rank]);
  }
  return ranks;
}

}  // namespace trireme::comm
