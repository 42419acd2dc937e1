#include "comm/memory_nodes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "comm/calls/exchange.hpp"
#include "comm/calls/receipt.hpp"
#include "comm/launch/launch.hpp"
#include "comm/network/network_backend.hpp"
#include "comm/shared/lone_backend.hpp"
#include "comm/shared/segment_backend.hpp"
#include "comm/shared/thread_platform.hpp"

namespace trireme::test {
namespace {

using comm::Backend;
using comm::Mailboxes;
using comm::Members;
using comm::RankContext;

constexpr comm::LinkModel slow_link{.latency_seconds = 50e-6, .seconds_per_byte = 8e-9};

// Notices overtake all messages.
class MemoryAlarm final : public comm::Alarm {
 public:
  class Board {
   public:
    explicit Board(std::size_t ranks) : notices_(ranks) {}

   private:
    friend class MemoryAlarm;
    std::mutex mutex_;
    std::vector<std::deque<Notice>> notices_;  // by receiver
  };

  MemoryAlarm(std::shared_ptr<RankContext> context, std::shared_ptr<comm::Wire> wire, std::vector<int> others, Board& board,
              const MemoryNetwork& network)
      : Alarm(context, std::move(wire), std::move(others)), me_(context->rank()), board_(board), network_(network) {}

 private:
  void send(const Notice& notice) override {
    if (network_.lost(me_)) return;
    const std::lock_guard lock(board_.mutex_);
    for (const int other : others()) board_.notices_[static_cast<std::size_t>(other)].push_back(notice);
  }
  std::optional<Notice> next() override {
    const std::lock_guard lock(board_.mutex_);
    auto& mine = board_.notices_[static_cast<std::size_t>(me_)];
    if (mine.empty()) return std::nullopt;
    const Notice notice = mine.front();
    mine.pop_front();
    return notice;
  }

  int me_;
  Board& board_;
  const MemoryNetwork& network_;
};

// The state that all ranks of a job share.
struct Shared {
  explicit Shared(const NodesJob& of)
      : job(of),
        ranks(std::accumulate(of.nodes.begin(), of.nodes.end(), 0)),
        network(std::make_shared<MemoryNetwork>(ranks, of.weather)),
        notices(static_cast<std::size_t>(ranks)) {
    for (const int size : job.nodes) {
      controls.push_back(comm::make_node_control(size));
      for (int rank = 0; rank < size; ++rank) {
        node_of.push_back(static_cast<int>(controls.size()) - 1);
        rank_on_node.push_back(rank);
      }
    }
  }

  int next_number() {
    const std::lock_guard lock(mutex);
    return numbers++;
  }

  // Of the ranks of one node in the group with this number; who asks first makes it. `use`: groups within the node are several.
  std::shared_ptr<comm::ThreadGroup> thread_group(int number, int node, int use, int size) {
    const std::lock_guard lock(mutex);
    auto& group = groups[{number, node, use}];
    if (group == nullptr) group = std::make_shared<comm::ThreadGroup>(size);
    return group;
  }
  std::shared_ptr<Mailboxes> mailboxes(int number) {
    const std::lock_guard lock(mutex);
    auto& of_group = boxes[number];
    if (of_group == nullptr) of_group = std::make_shared<Mailboxes>();
    return of_group;
  }

  NodesJob job;
  int ranks;
  std::shared_ptr<MemoryNetwork> network;
  MemoryAlarm::Board notices;
  std::vector<std::shared_ptr<comm::NodeControl>> controls;  // by node
  std::vector<int> node_of;                                  // by world rank
  std::vector<int> rank_on_node;

  std::mutex mutex;
  int numbers = 0;
  std::map<std::tuple<int, int, int>, std::shared_ptr<comm::ThreadGroup>> groups;
  std::map<int, std::shared_ptr<Mailboxes>> boxes;
};

// The state of one rank.
struct Rank {
  std::shared_ptr<Shared> shared;
  std::shared_ptr<RankContext> context;
  std::shared_ptr<MemoryTransport> transport;
  std::shared_ptr<comm::Wire> wire;
  std::shared_ptr<MemoryAlarm> alarm;

  int node() const { return shared->node_of[static_cast<std::size_t>(context->rank())]; }
  bool is_neighbour(int world_rank) const { return shared->node_of[static_cast<std::size_t>(world_rank)] == node(); }
  bool has_left(int world_rank) const {
    if (!is_neighbour(world_rank)) return alarm->left(world_rank);
    return context->node().left(shared->rank_on_node[static_cast<std::size_t>(world_rank)]);
  }
};

// As with MPI, the receiver of a message is not notified.
class ReceiveByLook final : public comm::Operation, public comm::Progress {
 public:
  ReceiveByLook(Rank rank, std::shared_ptr<Mailboxes> boxes, const Members& members, const comm::Call& message)
      : rank_(std::move(rank)),
        boxes_(std::move(boxes)),
        receipt_(members, message),
        key_(message.peer, members.me, message.tag),
        ticket_(boxes_->ticket(key_)) {
    rank_.context->add(this);
  }
  ~ReceiveByLook() override { rank_.context->remove(this); }
  ReceiveByLook(const ReceiveByLook&) = delete;
  ReceiveByLook& operator=(const ReceiveByLook&) = delete;

  RankContext& context() override { return *rank_.context; }
  void advance() override {}
  bool needs_polling() const override { return !received_; }
  bool ready() override {
    if (received_) return true;
    const auto letter = boxes_->take(key_, ticket_);
    if (!letter) return false;
    received_ = true;
    receipt_.check(letter->count, letter->dtype, letter->name);
    if (!letter->bytes.empty()) std::memcpy(receipt_.data(), letter->bytes.data(), letter->bytes.size());
    return true;
  }
  void check_peers() override {
    if (!rank_.has_left(receipt_.sender()) || ready()) return;
    context().check_failure();
    const Error error = receipt_.sender_left();
    context().record_failure(error);
    throw error;
  }
  ErrorFields describe_wait() const override { return receipt_.describe_wait(); }
  void abandon() noexcept override {}  // only this rank writes to the buffer

 private:
  Rank rank_;
  std::shared_ptr<Mailboxes> boxes_;
  comm::Receipt receipt_;
  Mailboxes::Key key_;
  std::uint64_t ticket_;
  bool received_ = false;
};

class MemoryMail final : public comm::Mail {
 public:
  MemoryMail(Rank rank, std::shared_ptr<Mailboxes> boxes, Members members)
      : rank_(std::move(rank)), boxes_(std::move(boxes)), members_(std::move(members)) {}

  void send(const comm::Call& message) override {
    const auto* data = static_cast<const std::byte*>(message.data);
    boxes_->put({members_.me, message.peer, message.tag}, {.bytes = std::vector<std::byte>(data, data + message.bytes()),
                                                           .count = message.count,
                                                           .dtype = message.dtype,
                                                           .name = std::string(message.name)});
  }
  std::unique_ptr<comm::Operation> receive(const comm::Call& message) override {
    return std::make_unique<ReceiveByLook>(rank_, boxes_, members_, message);
  }

 private:
  Rank rank_;
  std::shared_ptr<Mailboxes> boxes_;
  Members members_;
};

class NodesPlatform final : public comm::Platform, public std::enable_shared_from_this<NodesPlatform> {
 public:
  explicit NodesPlatform(Rank rank) : rank_(std::move(rank)) {}

  // `exchange` is between the ranks `of`.
  std::shared_ptr<Backend> make(const comm::Exchange& exchange, const std::vector<int>& of, const Members& members) {
    const std::string drawn = members.me == 0 ? std::to_string(rank_.shared->next_number()) : "";
    const auto leader = static_cast<std::size_t>(std::ranges::find(of, members.ranks.front()) - of.begin());
    const int number = std::stoi(exchange(drawn)[leader]);
    if (members.size() == 1) return std::make_shared<comm::LoneBackend>(rank_.context, members);
    Members here{.label = members.label, .ranks = {}, .me = 0};
    std::vector<std::string> names;
    for (const int rank : members.ranks) {
      names.push_back(std::to_string(rank_.shared->node_of[static_cast<std::size_t>(rank)]));
      if (!rank_.is_neighbour(rank)) continue;
      if (rank == rank_.context->rank()) here.me = here.size();
      here.ranks.push_back(rank);
    }
    auto mail = std::make_unique<MemoryMail>(rank_, rank_.shared->mailboxes(number), members);
    if (here.size() == members.size()) return node_group(members, number, 0, std::move(mail));
    comm::NetworkParts parts{.context = rank_.context,
                             .platform = shared_from_this(),
                             .alarm = rank_.alarm,
                             .wire = rank_.wire,
                             .members = members,
                             .nodes = comm::find_nodes(names, members.me),
                             .node_groups = {.inward = node_group(here, number, 0, nullptr),
                                             .outward = node_group(here, number, 1, nullptr),
                                             .memory = node_group(here, number, 2, nullptr)},
                             .calls = rank_.transport->open(2 * number, members.ranks),
                             .data = rank_.transport->open(2 * number + 1, members.ranks),
                             .mail = std::move(mail)};
    return comm::make_network_backend(std::move(parts), {.algorithm = rank_.shared->job.algorithm, .link = slow_link});
  }

  const comm::AddressSpace& addresses() const override { return addresses_; }
  std::shared_ptr<Backend> make_group(const std::shared_ptr<Backend>& parent, const Members& members) override {
    return make([&](std::string_view text) { return Group(parent).gather_texts(text, members.label); }, parent->members().ranks,
                members);
  }
  std::shared_ptr<device::MemoryResource> memory(std::shared_ptr<Backend> /*group*/) override { return device::host_memory(); }

 private:
  std::shared_ptr<Backend> node_group(const Members& members, int number, int use, std::unique_ptr<comm::Mail> mail) {
    if (members.size() == 1) return std::make_shared<comm::LoneBackend>(rank_.context, comm::world_members(0, 1));
    const auto group = rank_.shared->thread_group(number, rank_.node(), use, members.size());
    comm::SegmentBackend::Shared shared{
        .memory = group->memory, .control = comm::GroupControl(group->memory.get(), members.size(), 0), .node_ranks = {}};
    for (const int rank : members.ranks) {
      shared.node_ranks.push_back(rank_.shared->rank_on_node[static_cast<std::size_t>(rank)]);
    }
    return std::make_shared<comm::SegmentBackend>(rank_.context, shared_from_this(), members, std::move(shared),
                                                  std::move(mail));
  }

  Rank rank_;
  comm::ThreadAddressSpace addresses_;
};

// `together`: how the ranks find each other when the job starts.
int run(const std::shared_ptr<Shared>& shared, int world_rank, const std::shared_ptr<Backend>& together,
        const std::function<int(const Group&)>& main) {
  const auto index = static_cast<std::size_t>(world_rank);
  const auto node = static_cast<std::size_t>(shared->node_of[index]);
  Rank rank;
  rank.shared = shared;
  rank.context = std::make_shared<RankContext>(RankContext::Place{.rank = world_rank,
                                                                  .node_rank = shared->rank_on_node[index],
                                                                  .shares_all = shared->job.nodes.size() == 1,
                                                                  .shares_cores = true,
                                                                  .deadline = shared->job.deadline},
                                               shared->controls[node]);
  rank.transport = std::make_shared<MemoryTransport>(shared->network, world_rank);
  rank.wire = std::make_shared<comm::Wire>(rank.context, shared->job.progress, rank.transport);
  std::vector<int> others;
  for (int other = 0; other < shared->ranks; ++other) {
    if (!rank.is_neighbour(other)) others.push_back(other);
  }
  rank.alarm = std::make_shared<MemoryAlarm>(rank.context, rank.wire, others, shared->notices, *shared->network);
  const auto world = std::make_shared<NodesPlatform>(rank)->make(
      [&](std::string_view text) { return Group(together).gather_texts(text); }, comm::ranks_below(shared->ranks),
      comm::world_members(world_rank, shared->ranks));
  const int code = comm::run_rank(*rank.context, world, main);
  rank.context->node().note_return(rank.context->node_rank());
  rank.alarm->tell_return();
  rank.context->leave();
  rank.alarm->leave();
  return code;
}

}  // namespace

int launch_on_nodes(const NodesJob& job, const std::function<int(const Group&)>& main) {
  const auto shared = std::make_shared<Shared>(job);
  const auto meeting = std::make_shared<comm::ThreadGroup>(shared->ranks);
  const auto meeting_node = comm::make_node_control(shared->ranks);
  std::vector<int> codes(static_cast<std::size_t>(shared->ranks));
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < shared->ranks; ++rank) {
      threads.emplace_back([&, rank] {
        const auto context = std::make_shared<RankContext>(
            RankContext::Place{
                .rank = rank, .node_rank = rank, .shares_all = true, .shares_cores = true, .deadline = std::chrono::minutes(1)},
            meeting_node);
        const auto together =
            std::make_shared<comm::ThreadPlatform>(context)->join(comm::world_members(rank, shared->ranks), meeting);
        codes[static_cast<std::size_t>(rank)] = run(shared, rank, together, main);
      });
    }
  }
  return std::ranges::max(codes);
}

}  // namespace trireme::test
