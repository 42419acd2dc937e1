#include "comm/tcp/hub_link.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "comm/tcp/proof.hpp"
#include "trireme/core/exit_code.hpp"

namespace trireme::comm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds nap{1};
constexpr std::chrono::seconds hub_patience{2};     // beyond the deadline, so that the hub gives up first and sends the reason
constexpr std::chrono::seconds longest_silence{2};  // of a hub after connecting
constexpr std::chrono::milliseconds between_visits{100};

Failure failure_of(const Frame& frame) {
  return {.rank = frame.header.rank,
          .exit_code = frame.header.exit_code,
          .code = frame.header.code,
          .sequence = frame.header.call.sequence,
          .text = frame.text()};
}

}  // namespace

HubLink::HubLink(const HubPlace& place, std::chrono::milliseconds deadline)
    : place_(place),
      grace_(std::clamp<std::chrono::milliseconds>(deadline, std::chrono::seconds(3), std::chrono::seconds(5))),
      node_(make_node_control(place.size)) {
  meet(deadline);
  thread_ = std::jthread([this](const std::stop_token& stop) { serve(stop); });
}

HubLink::~HubLink() = default;

std::optional<Frame> HubLink::await_frame(Clock::time_point end) {
  for (bool is_there = true;;) {
    if (auto frame = connection_.next()) return frame;
    if (!is_there || Clock::now() >= end) return std::nullopt;
    if (wait_for_input(connection_.socket(), look_interval)) is_there = connection_.receive();
  }
}

// The hub sends first. If a connection opens but nothing arrives, as with a proxy that has no server behind it, tries again.
std::optional<Frame> HubLink::first_frame(std::chrono::milliseconds deadline) {
  const auto end = Clock::now() + deadline;
  for (;; std::this_thread::sleep_for(between_visits)) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
    connection_ = FrameConnection(connect_to(place_.address, place_.port, std::max(left, between_visits)));
    connection_.socket().limit_sends(deadline);
    if (wait_for_bytes(connection_.socket(), longest_silence)) return await_frame(end + hub_patience);
    if (Clock::now() >= end) return std::nullopt;
  }
}

void HubLink::meet(std::chrono::milliseconds deadline) {
  const auto end = Clock::now() + deadline + hub_patience;
  auto frame = first_frame(deadline);
  const char* fault = "does not answer";
  if (frame && frame->header.kind == FrameKind::challenge && frame->data.size() == sizeof(Sha256)) {
    Challenges challenges{.of_rank = make_challenge()};
    std::ranges::copy(frame->data, challenges.of_hub.begin());
    std::vector<std::byte> hello(challenges.of_rank.begin(), challenges.of_rank.end());
    const auto prove = [&](Prover who) { return proof_of(place_.secret, who, challenges, place_.rank, place_.size); };
    const Sha256 proof = prove(Prover::rank);
    hello.insert(hello.end(), proof.begin(), proof.end());
    send({.kind = FrameKind::hello, .rank = place_.rank, .size = place_.size}, hello);
    frame = await_frame(end);
    const bool is_welcome = frame && frame->header.kind == FrameKind::welcome;
    if (is_welcome && are_equal(frame->data, prove(Prover::hub))) return;
    if (is_welcome) fault = "is another program: it does not know this job's TRIREME_JOB_SECRET";
  }
  const bool told = frame && frame->header.kind == FrameKind::failure;
  throw Error(
      {.code = told ? frame->header.code : ErrorCode::peer_failed,
       .message = told ? frame->text() : fmt::format("what listens at {} port {} {}", place_.address, place_.port, fault),
       .rank = place_.rank,
       .hint = "all ranks need the same MASTER_ADDR, MASTER_PORT, WORLD_SIZE and TRIREME_JOB_SECRET, and each its own RANK"});
}

// Ignores a closed connection, which look() notices.
void HubLink::send(const FrameHeader& header, std::span<const std::byte> data) {
  const std::lock_guard lock(sending_);
  if (send_frame(connection_.socket(), header, data) || errno != EAGAIN) return;
  const std::string text = fmt::format("the process of rank 0 takes nothing that rank {} sends", place_.rank);
  node_->record_failure(
      {.rank = 0, .exit_code = static_cast<int>(exit_code_of(ErrorCode::timeout)), .code = ErrorCode::timeout, .text = text});
}

void HubLink::serve(const std::stop_token& stop) {
  try {
    while (!stop.stop_requested() && look()) {
    }
  } catch (const std::exception& error) {
    node_->record_failure(
        {.rank = place_.rank, .text = fmt::format("what the other ranks send can't be taken: {}", error.what())});
    relay_failure();
  }
}

bool HubLink::look() {
  const bool arrived = wait_for_input(connection_.socket(), look_interval);
  relay_failure();
  end_stuck_process();
  if (!arrived) return true;
  const bool is_there = connection_.receive();
  while (auto frame = connection_.next()) take(std::move(*frame));
  if (is_there) return true;
  node_->claim_relay();
  if (!node_->left(0)) {
    node_->record_failure({.rank = 0, .code = ErrorCode::peer_failed, .text = "the process of rank 0 is gone"});
  }
  for (int rank = 0; rank < place_.size; ++rank) {
    if (rank != place_.rank) node_->leave(rank);
  }
  return false;
}

void HubLink::take(Frame frame) {
  const FrameHeader header = frame.header;
  const CallId id{header.group, header.call.sequence};
  switch (header.kind) {
    case FrameKind::result:
    case FrameKind::mismatch:
    case FrameKind::abandoned: {
      if (header.kind == FrameKind::mismatch && header.to != place_.rank) node_->claim_report();
      const std::lock_guard lock(mutex_);
      missing_.erase(id);
      answers_.insert_or_assign(id, std::move(frame));
      break;
    }
    case FrameKind::missing: {
      const std::lock_guard lock(mutex_);
      missing_[id] = frame.text();
      break;
    }
    case FrameKind::letter:
      boxes(header.group)
          ->put({header.rank, header.size, header.tag}, {.bytes = std::move(frame.data),
                                                         .count = static_cast<std::size_t>(header.call.count),
                                                         .dtype = header.call.dtype,
                                                         .name = header.call.name.data()});
      break;
    case FrameKind::failure:
      node_->claim_relay();  // the hub informs all ranks
      if (header.to != place_.rank) node_->claim_report();
      node_->record_failure(failure_of(frame));
      break;
    case FrameKind::farewell:
      if (header.rank >= 0 && header.rank < place_.size) node_->leave(header.rank);
      break;
    default: break;  // the hub does not send these
  }
  node_->note_change(place_.rank);
  full_fence();
  node_->wake({&place_.rank, 1});
}

void HubLink::relay_failure() {
  if (!node_->failed() || !node_->claim_relay()) return;
  const Failure first = node_->failure();
  FrameHeader header{
      .kind = FrameKind::failure, .rank = first.rank, .to = place_.rank, .exit_code = first.exit_code, .code = first.code};
  header.call.sequence = first.sequence;
  send(header, bytes_of(first.text));
}

// Ends this process if its rank does not return after a failure, its own or another's.
void HubLink::end_stuck_process() {
  if (!node_->failed()) return;
  const auto now = Clock::now();
  if (!failed_since_) failed_since_ = now;
  if (now - *failed_since_ < grace_ || node_->left(place_.rank)) return;
  const Failure first = node_->failure();
  // Not through the log, since a rank may hang in its sink.
  const std::string text = fmt::format(
      "trireme: rank {} has not returned after the failure of rank {}; this ends its process\n", place_.rank, first.rank);
  std::fputs(text.c_str(), stderr);  // fmt::print would throw if stderr is closed
  std::fflush(nullptr);
  std::_Exit(first.exit_code);
}

std::optional<Frame> HubLink::take(const CallId& id) {
  const std::lock_guard lock(mutex_);
  auto answer = answers_.extract(id);
  if (answer.empty()) return std::nullopt;
  return std::move(answer.mapped());
}

std::optional<std::string> HubLink::missing(const CallId& id) {
  const std::lock_guard lock(mutex_);
  const auto found = missing_.find(id);
  if (found == missing_.end()) return std::nullopt;
  return found->second;
}

std::shared_ptr<Mailboxes> HubLink::boxes(std::uint64_t group) {
  const std::lock_guard lock(mutex_);
  auto& boxes = boxes_[group];
  if (boxes == nullptr) boxes = std::make_shared<Mailboxes>();
  return boxes;
}

int HubLink::finish(RankContext& context, int code) {
  relay_failure();
  send({.kind = FrameKind::farewell, .rank = place_.rank});
  context.leave();
  std::optional<Clock::time_point> end;
  while (!node_->all_left()) {
    const auto now = Clock::now();
    if (!end && node_->failed()) end = now + grace_ + hub_patience;
    if (end && now >= *end) break;
    std::this_thread::sleep_for(nap);
  }
  return context.conclude(code);
}

}  // namespace trireme::comm
