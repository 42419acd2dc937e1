#include "comm/tcp/hub.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <exception>
#include <iterator>
#include <utility>

#include "comm/calls/members.hpp"
#include "comm/reduce/reduce.hpp"
#include "comm/tcp/proof.hpp"
#include "trireme/core/exit_code.hpp"

namespace trireme::comm {
namespace {

using Data = std::vector<std::byte>;

constexpr std::chrono::seconds longest_visit{10};  // of a guest
constexpr std::size_t most_guests = 4096;          // at a time; the oldest are dropped, also if there are no more descriptors
constexpr std::size_t hello_bytes = 2 * sizeof(Sha256);
constexpr std::chrono::seconds last_sends{2};  // to send the remaining frames when rank 0 leaves

Data reduce_all(const std::vector<std::optional<Frame>>& calls) {
  const WrittenCall& call = calls.front()->header.call;
  Data result(calls.front()->data.size());
  std::vector<const std::byte*> from;
  for (const auto& one : calls) from.push_back(one->data.data());
  std::byte* to = result.data();
  reduce(call.op, call.dtype, from, {&to, 1}, static_cast<std::size_t>(call.count));
  return result;
}

// The result for all members; of a reduce_scatter each gets its part.
Data compute(const std::vector<std::optional<Frame>>& calls) {
  const FrameHeader& header = calls.front()->header;
  Data result;
  switch (header.work) {
    case CallKind::send:
    case CallKind::receive:
    case CallKind::barrier: break;
    case CallKind::all_reduce:
    case CallKind::reduce_scatter: return reduce_all(calls);
    case CallKind::broadcast: return calls[static_cast<std::size_t>(header.call.root)]->data;
    case CallKind::all_gather:
      for (const auto& one : calls) result.insert(result.end(), one->data.begin(), one->data.end());
      break;
  }
  return result;
}

std::span<const std::byte> share_of(const Data& result, const FrameHeader& header, int rank, int ranks) {
  if (header.work != CallKind::reduce_scatter) return result;
  const Range part = part_of(static_cast<std::int64_t>(header.call.count), rank, ranks);
  const std::size_t size = size_of(header.call.dtype);
  return std::span(result).subspan(static_cast<std::size_t>(part.begin) * size, static_cast<std::size_t>(part.count()) * size);
}

bool all_same(const std::vector<std::optional<Frame>>& calls) {
  const FrameHeader& first = calls.front()->header;
  return std::ranges::all_of(
      calls, [&first](const auto& one) { return same(one->header.call, first.call) && one->header.work == first.work; });
}

// A failure that the hub notices; rank 0, in whose process the hub runs, prints it.
FrameHeader failure_of(int rank, ErrorCode code) {
  return {.kind = FrameKind::failure, .rank = rank, .exit_code = static_cast<std::int32_t>(exit_code_of(code)), .code = code};
}

std::string with_verb(const std::vector<int>& ranks) { return list_of_ranks(ranks) + (ranks.size() == 1 ? " has" : " have"); }

}  // namespace

Hub::Hub(Socket listener, int ranks, std::string secret, std::chrono::milliseconds deadline)
    : listener_(std::move(listener)),
      secret_(std::move(secret)),
      deadline_(deadline),
      ranks_(static_cast<std::size_t>(ranks)),
      proofs_(static_cast<std::size_t>(ranks)),
      thread_([this](const std::stop_token& stop) { serve(stop); }) {}

void Hub::serve(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    try {
      look();
    } catch (const std::exception& error) {
      fail(failure_of(0, ErrorCode::internal), fmt::format("the collectives of the job fail: {}", error.what()));
    }
  }
  const auto end = Clock::now() + last_sends;
  const auto has_unsent = [](const FrameConnection& connection) { return connection.has_unsent(); };
  while (std::ranges::any_of(ranks_, has_unsent) && Clock::now() < end) {
    send_rest();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void Hub::look() {
  std::vector<pollfd> events;
  const auto watch = [&events](const FrameConnection& connection) {
    const int wanted = connection.has_unsent() ? POLLIN | POLLOUT : POLLIN;
    events.push_back({.fd = connection.socket().descriptor(), .events = static_cast<short>(wanted), .revents = 0});
  };
  events.push_back({.fd = listener_.descriptor(), .events = POLLIN, .revents = 0});  // poll ignores a closed socket
  for (const Guest& guest : guests_) watch(guest.connection);
  for (const FrameConnection& connection : ranks_) watch(connection);
  poll(events.data(), events.size(), static_cast<int>(look_interval.count()));
  const std::size_t num_guests = guests_.size();
  for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
    if ((events[1 + num_guests + rank].revents & ~POLLOUT) != 0) hear(static_cast<int>(rank));
  }
  send_rest();
  for (std::size_t index = 0; index < guests_.size(); ++index) {
    if (events[1 + index].revents != 0) greet(guests_[index]);
  }
  std::erase_if(guests_, [this, now = Clock::now()](const Guest& guest) {
    return met_ || !guest.connection || now - guest.came > longest_visit;
  });
  if (events[0].revents != 0) admit();
  if (!met_) give_up_meeting();
  for (auto& [id, collective] : collectives_) remind(id, collective);
}

void Hub::send_rest() {
  for (FrameConnection& connection : ranks_) connection.send_on();
}

void Hub::admit() {
  Socket socket = listener_.accept();
  if (!socket) {
    if (errno == EMFILE || errno == ENFILE) make_room();
    return;
  }
  if (guests_.size() == most_guests) guests_.erase(guests_.begin());
  Guest& guest = guests_.emplace_back(Guest{
      .connection = FrameConnection(std::move(socket), hello_bytes), .challenge = make_challenge(), .came = Clock::now()});
  guest.connection.send({.kind = FrameKind::challenge}, guest.challenge);
}

// The process has no more descriptors: drops the oldest guests, since a rank identifies itself at once.
void Hub::make_room() {
  if (guests_.empty()) {
    listener_ = Socket();
    return fail(failure_of(0, ErrorCode::io), "rank 0 may open no more connections: raise the limit of open files (ulimit -n)");
  }
  guests_.erase(guests_.begin(), guests_.begin() + (std::ssize(guests_) + 1) / 2);
}

// A connection that is silent or not from a rank of this job must not make the ranks wait.
void Hub::greet(Guest& guest) {
  const bool is_there = guest.connection.receive();
  if (const auto frame = guest.connection.next()) {
    take_hello(guest, *frame);
    guest.connection = FrameConnection();
  } else if (!is_there) {
    guest.connection = FrameConnection();
  }
}

void Hub::take_hello(Guest& guest, const Frame& hello) {
  if (hello.header.kind != FrameKind::hello) return;
  const int rank = hello.header.rank;
  const int size = static_cast<int>(ranks_.size());
  if (hello.data.size() != hello_bytes) return;
  Challenges challenges{.of_hub = guest.challenge};
  std::ranges::copy_n(hello.data.begin(), std::ssize(challenges.of_rank), challenges.of_rank.begin());
  const bool knows_secret = are_equal(std::span(hello.data).subspan(sizeof(Sha256)),
                                      proof_of(secret_, Prover::rank, challenges, rank, hello.header.size));
  if (!knows_secret || hello.header.size != size || rank < 0 || rank >= size || has_come(rank)) {
    const std::string text = knows_secret
                                 ? fmt::format("rank {} of {} came where {} ranks meet{}", rank, hello.header.size, size,
                                               rank >= 0 && rank < size && has_come(rank) ? ", and for the second time" : "")
                                 : "a rank came with another TRIREME_JOB_SECRET than rank 0 has";
    return guest.connection.send(failure_of(rank, ErrorCode::invalid_argument), bytes_of(text));
  }
  FrameConnection& connection = ranks_[static_cast<std::size_t>(rank)];
  connection = std::move(guest.connection);
  connection.allow_large_frames();
  proofs_[static_cast<std::size_t>(rank)] = proof_of(secret_, Prover::hub, challenges, rank, size);
  met_ = std::ranges::all_of(ranks_, [](const FrameConnection& one) { return static_cast<bool>(one); });
  if (!met_) return;
  listener_ = Socket();
  for (int one = 0; one < size; ++one) send(one, {.kind = FrameKind::welcome}, proofs_[static_cast<std::size_t>(one)]);
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
  begin_ = Clock::time_point::max() - deadline_;  // reports it only once
}

void Hub::hear(int rank) {
  FrameConnection& connection = ranks_[static_cast<std::size_t>(rank)];
  const bool is_there = connection.receive();
  while (auto frame = connection.next()) {
    take(rank, std::move(*frame));
    if (!connection) return;
  }
  if (!is_there) dismiss(rank, "is gone");
}

// Closes the connection of a rank. If the rank has not left before, it has failed.
void Hub::dismiss(int rank, std::string_view what) {
  ranks_[static_cast<std::size_t>(rank)] = FrameConnection();
  if (!left_.contains(rank)) {
    fail(failure_of(rank, ErrorCode::peer_failed), fmt::format("the process of rank {} {}", rank, what));
  }
  leave(rank);
}

void Hub::take(int rank, Frame frame) {
  const std::string_view fault = fault_of(frame, rank, static_cast<int>(ranks_.size()), members_);
  if (!fault.empty()) return dismiss(rank, fmt::format("sent {}", fault));
  const FrameHeader header = frame.header;
  switch (header.kind) {
    case FrameKind::members: members_[header.group] = members_in(frame); break;
    case FrameKind::call: take_call(std::move(frame)); break;
    case FrameKind::letter: send(header.to, header, frame.data); break;
    case FrameKind::failure: fail(header, frame.text()); break;
    case FrameKind::farewell: leave(rank); break;
    default: break;  // only the hub sends these
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
  if (collective.calls[rank]) return dismiss(members_[id.first][rank], "sent a call for the second time");
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
    return send_callers(collective, id, {.kind = FrameKind::mismatch, .to = members_[id.first].front()}, bytes_of(lines));
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

// Tells the callers which ranks are missing, so that the error of a missed deadline can name them.
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

// Informs the callers if a rank has left without making the call, which then never completes.
void Hub::abandon(const CallId& id, const Collective& collective) {
  for (const int rank : missing(id, collective)) {
    if (left_.contains(rank)) return send_callers(collective, id, {.kind = FrameKind::abandoned, .rank = rank}, {});
  }
}

// Sends the first failure to all ranks.
void Hub::fail(const FrameHeader& header, const std::string& text) {
  if (!std::exchange(failed_, true)) send_all(header, bytes_of(text));
}

void Hub::send(int rank, const FrameHeader& header, std::span<const std::byte> data) {
  if (rank >= 0 && rank < static_cast<int>(ranks_.size()) && has_come(rank)) {
    ranks_[static_cast<std::size_t>(rank)].send(header, data);
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
