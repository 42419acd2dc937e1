#include "comm/tcp/tcp_backend.hpp"

#include <fmt/format.h>

#include <cstring>
#include <functional>
#include <utility>

#include "comm/base/nodes.hpp"
#include "comm/calls/mismatch.hpp"
#include "comm/shared/lone_backend.hpp"
#include "comm/shared/platform.hpp"

namespace trireme::comm {
namespace {

// The bytes of a call's data that this rank sends.
std::span<const std::byte> given(const Call& call, const Members& members) {
  const std::span data(static_cast<const std::byte*>(call.data), call.bytes());
  switch (call.work()) {
    case CallKind::send:
    case CallKind::receive:
    case CallKind::barrier: return {};
    case CallKind::all_reduce:
    case CallKind::reduce_scatter: return data;
    case CallKind::broadcast: return call.peer == members.me ? data : data.first(0);
    case CallKind::all_gather: {
      const Range part = part_of(static_cast<std::int64_t>(call.count), members.me, members.size());
      const std::size_t size = size_of(call.dtype);
      return data.subspan(static_cast<std::size_t>(part.begin) * size, static_cast<std::size_t>(part.count()) * size);
    }
  }
  return {};
}

// The offset in a call's data at which the hub's answer is stored.
std::size_t offset_of_result(const Call& call, const Members& members) {
  if (call.work() != CallKind::reduce_scatter) return 0;
  const Range part = part_of(static_cast<std::int64_t>(call.count), members.me, members.size());
  return static_cast<std::size_t>(part.begin) * size_of(call.dtype);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

class TcpOperation final : public Operation {
 public:
  TcpOperation(std::shared_ptr<RankContext> context, std::shared_ptr<HubLink> link, const Members& members, const Call& call,
               const HubLink::CallId& id)
      : context_(std::move(context)), link_(std::move(link)), members_(members), call_(call), name_(call.name), id_(id) {
    call_.name = name_;
  }

  RankContext& context() override { return *context_; }

  bool ready() override {
    if (done_) return true;
    const auto answer = link_->take(id_);
    if (!answer) return false;
    if (answer->header.kind == FrameKind::mismatch) {
      failure_ = mismatch_error(lines_of(answer->text()), members_, id_.second);
    } else if (answer->header.kind == FrameKind::abandoned) {
      left_ = answer->header.rank;
    } else {
      const std::size_t offset = offset_of_result(call_, members_);
      if (answer->data.size() > call_.bytes() - offset) throw Error({.message = "the hub sent more than a call's data"});
      done_ = true;
      if (!answer->data.empty()) {
        std::memcpy(static_cast<std::byte*>(call_.data) + offset, answer->data.data(), answer->data.size());
      }
    }
    if (failure_) throw *failure_;
    return done_;
  }

  void check_peers() override {
    if (left_ < 0) return;
    context_->check_failure();
    const Error error({.code = ErrorCode::peer_failed,
                       .message = fmt::format("rank {} left the group \"{}\" while rank {} waits for it in {}", left_,
                                              members_.label, context_->rank(), describe(call_, id_.second)),
                       .rank = left_,
                       .sequence = id_.second});
    context_->record_failure(error);
    throw error;
  }

  ErrorFields describe_wait() const override {
    return {.message = fmt::format("{}; {} not made this call", wait_text(), link_->missing(id_).value_or("another rank has")),
            .sequence = id_.second,
            .hint = "a rank that is behind is busy elsewhere, or took another path through the program"};
  }
  std::string wait_text() const override {
    return fmt::format("{} of group \"{}\"", describe(call_, id_.second), members_.label);
  }
  void abandon() noexcept override {}  // only this rank accesses its memory

 private:
  std::shared_ptr<RankContext> context_;
  std::shared_ptr<HubLink> link_;
  Members members_;
  Call call_;
  std::string name_;
  HubLink::CallId id_;
  bool done_ = false;
  int left_ = -1;  // the rank that left without making the call
  std::optional<Error> failure_;
};

class TcpBackend final : public Backend {
 public:
  TcpBackend(std::shared_ptr<RankContext> context, std::shared_ptr<HubLink> link, Members members, std::uint64_t id)
      : context_(std::move(context)),
        link_(std::move(link)),
        members_(std::move(members)),
        id_(id),
        mail_(open_mail(link_->boxes(id), context_, members_, members_.ranks)) {
    link_->send({.kind = FrameKind::members, .group = id_}, std::as_bytes(std::span(members_.ranks)));
  }

  const Members& members() const override { return members_; }
  RankContext& context() override { return *context_; }

  std::unique_ptr<Operation> start(const Call& call) override {
    FrameHeader header{.kind = FrameKind::call, .rank = members_.me, .work = call.work(), .group = id_};
    header.call = write_call(call, ++sequence_);
    link_->send(header, given(call, members_));
    return std::make_unique<TcpOperation>(context_, link_, members_, call, HubLink::CallId{id_, sequence_});
  }

  void send(const Call& message) override {
    FrameHeader header{.kind = FrameKind::letter,
                       .rank = members_.me,
                       .size = message.peer,
                       .to = members_.ranks[static_cast<std::size_t>(message.peer)],
                       .tag = message.tag,
                       .group = id_};
    header.call = write_call(message, 0);
    link_->send(header, {static_cast<const std::byte*>(message.data), message.bytes()});
  }
  std::unique_ptr<Operation> receive(const Call& message) override { return mail_->receive(message); }

  std::shared_ptr<device::MemoryResource> memory() override { return device::host_memory(); }
  bool on_one_node() const override { return false; }
  std::vector<std::vector<int>> nodes() const override { return scatter_nodes(members_.size(), members_.me).members; }

  // All ranks of this group have made the same number of calls, so all members of the new group compute the same id.
  std::shared_ptr<Backend> make_group(const Members& members) override {
    const std::string place = fmt::format("{} {} {}", id_, sequence_, members.ranks.front());
    return make_tcp_group(context_, link_, members, std::hash<std::string>{}(place));
  }

 private:
  std::shared_ptr<RankContext> context_;
  std::shared_ptr<HubLink> link_;
  Members members_;
  std::uint64_t id_;
  std::unique_ptr<Mail> mail_;
  std::uint64_t sequence_ = 0;
};

}  // namespace

std::shared_ptr<Backend> make_tcp_group(std::shared_ptr<RankContext> context, std::shared_ptr<HubLink> link,
                                        const Members& members, std::uint64_t id) {
  if (members.size() == 1) return std::make_shared<LoneBackend>(std::move(context), members);
  return std::make_shared<TcpBackend>(std::move(context), std::move(link), members, id);
}

}  // namespace trireme::comm
