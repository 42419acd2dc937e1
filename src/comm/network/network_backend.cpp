#include "comm/network/network_backend.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <optional>
#include <utility>

#include "comm/calls/mismatch.hpp"
#include "comm/network/network_layout.hpp"
#include "comm/reduce/reduce.hpp"

namespace trireme::comm {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds last_delivery{500};  // for messages that a rank sent before it left

// A collective on its way through the three levels.
struct Flight {
  enum class Level { inward, network, outward, done };

  std::uint64_t sequence = 0;
  Call call;
  std::string name;  // `call.name` points here
  Level level = Level::inward;
  std::unique_ptr<Operation> inward;          // null if this rank is alone on its node
  InterNodeCollective* collective = nullptr;  // owned by the ticket
  std::unique_ptr<Wire::Ticket> ticket;
  std::unique_ptr<Operation> outward;
  std::optional<Clock::time_point> peer_left;
};

class NetworkBackend final : public Backend, public Progress, public std::enable_shared_from_this<NetworkBackend> {
 public:
  NetworkBackend(NetworkParts parts, const NetworkOptions& options)
      : parts_(std::move(parts)),
        options_(options),
        layout_(parts_.nodes, parts_.members.me, parts_.members.size()),
        scattered_(scatter_nodes(parts_.members.size(), parts_.members.me), parts_.members.me, parts_.members.size()),
        keeps_fixed_order_(parts_.nodes.keep_fixed_order()) {
    lane_.node = parts_.nodes.node;
    lane_.calls = parts_.calls;
    lane_.data.transport = &parts_.wire->transport();
    lane_.data.channel = parts_.data;
    for (int rank = 0; rank < parts_.members.size(); ++rank) {
      lane_.data.on_my_node.push_back(parts_.nodes.node_of(rank) == parts_.nodes.node);
    }
    if (parts_.nodes.is_lane()) {
      for (const auto& ranks : parts_.nodes.members) lane_.peers.push_back(ranks[static_cast<std::size_t>(parts_.nodes.index)]);
    }
    context().add(this);
  }
  ~NetworkBackend() override { context().remove(this); }

  const Members& members() const override { return parts_.members; }
  RankContext& context() override { return *parts_.context; }
  std::unique_ptr<Operation> start(const Call& call) override;
  std::unique_ptr<Operation> receive(const Call& message) override { return parts_.mail->receive(message); }
  void send(const Call& message) override {
    if (!lane_.data.on_my_node[static_cast<std::size_t>(message.peer)]) message_bytes_sent_ += message.bytes();
    parts_.mail->send(message);
  }
  std::shared_ptr<device::MemoryResource> memory() override { return parts_.node_groups.memory->memory(); }
  std::shared_ptr<Backend> make_group(const Members& members) override {
    return parts_.platform->make_group(shared_from_this(), members);
  }
  bool on_one_node() const override { return false; }
  std::vector<std::vector<int>> nodes() const override { return parts_.nodes.members; }
  std::uint64_t bytes_sent() override {
    const Wire::Turn turn = parts_.wire->take_turn();
    return lane_.data.bytes_sent + message_bytes_sent_;
  }

  void advance() override;

  // Called by the operation of a flight.
  void check_peers(Flight& flight);
  ErrorFields describe_wait(const Flight& flight) const;
  void abandon(Flight& flight) noexcept;

 private:
  bool advance(Flight& flight);
  Algorithm choose(const Call& call, int nodes, double lane_bytes) const;
  bool in_one_level(const Call& call) const { return call.op == ReduceOp::fixed_sum && !keeps_fixed_order_; }
  bool is_compared(const Call& call) const {
    return call.work() == CallKind::barrier || in_one_level(call);
  }  // the node only compares it
  InterNodeCollective::Work make_work(const Call& call, std::uint64_t sequence) const;
  void divide_mean(const Call& call) const;
  Error disagreement(const Flight& flight) const;
  std::vector<int> ranks_without_call(const Flight& flight) const;

  NetworkParts parts_;
  NetworkOptions options_;
  NetworkLayout layout_;
  NetworkLayout scattered_;  // with each rank as a node of its own
  bool keeps_fixed_order_;
  Lane lane_;
  std::uint64_t sequence_ = 0;
  std::uint64_t message_bytes_sent_ = 0;
  bool advancing_ = false;
  std::optional<Error> mismatch_;
  std::deque<std::shared_ptr<Flight>> flights_;
};

class NetworkOperation final : public Operation {
 public:
  NetworkOperation(std::shared_ptr<NetworkBackend> group, std::shared_ptr<Flight> flight)
      : group_(std::move(group)), flight_(std::move(flight)) {}

  RankContext& context() override { return group_->context(); }
  bool ready() override { return flight_->level == Flight::Level::done; }
  void check_peers() override { group_->check_peers(*flight_); }
  ErrorFields describe_wait() const override { return group_->describe_wait(*flight_); }
  void abandon() noexcept override { group_->abandon(*flight_); }

 private:
  std::shared_ptr<NetworkBackend> group_;
  std::shared_ptr<Flight> flight_;
};

std::unique_ptr<Operation> NetworkBackend::start(const Call& call) {
  auto flight = std::make_shared<Flight>();
  flight->sequence = ++sequence_;
  flight->call = call;
  flight->name = call.name;
  flight->call.name = flight->name;
  flight->call.flight_number = 0;  // Pending ends the entry when all levels are done
  auto collective = std::make_unique<InterNodeCollective>(lane_, make_work(flight->call, flight->sequence));
  flight->collective = collective.get();
  flight->inward =
      parts_.node_groups.inward->start(is_compared(call) ? comparison_of(flight->call) : layout_.inward(flight->call));
  flight->ticket = std::make_unique<Wire::Ticket>(*parts_.wire, std::move(collective));
  flights_.push_back(flight);
  advance();
  context().wake_others();
  return std::make_unique<NetworkOperation>(shared_from_this(), flight);
}

InterNodeCollective::Work NetworkBackend::make_work(const Call& call, std::uint64_t sequence) const {
  InterNodeCollective::Work work{.call = call, .sequence = sequence, .small = {}, .schedule = {}};
  if (call.work() == CallKind::barrier) return work;
  if (call.op == ReduceOp::mean)
    work.call.share = Share{.kind = call.kind, .op = ReduceOp::sum, .owners = {}};  // divided once, at the end
  if (in_one_level(call)) {
    work.schedule = scattered_.schedule(call, choose(call, parts_.members.size(), 0));
    return work;
  }
  const bool reduces = call.kind == CallKind::all_reduce;
  const std::size_t lane_bytes = call.bytes() / static_cast<std::size_t>(parts_.nodes.lanes);
  const bool small = options_.algorithm == Algorithm::automatic && reduces && lane_bytes <= small_bytes / 2;
  if (small) {
    work.small = layout_.lane_range(call);
    return work;
  }
  work.schedule = layout_.schedule(call, choose(call, parts_.nodes.size(), static_cast<double>(lane_bytes)));
  return work;
}

Algorithm NetworkBackend::choose(const Call& call, int nodes, double lane_bytes) const {
  if (call.op == ReduceOp::fixed_sum) {  // only these two algorithms reduce all nodes at once, in order
    return nodes == 2 ? Algorithm::all_pairs : Algorithm::direct;
  }
  if (options_.algorithm != Algorithm::automatic) return options_.algorithm;
  return choose_algorithm(nodes, lane_bytes, options_.link);
}

// Each level takes the calls in order; different calls may be on different levels at the same time.
void NetworkBackend::advance() {
  if (advancing_) return;  // starting the last level may wait for the node, which calls this again
  if (mismatch_) throw *mismatch_;
  const struct Advancing {
    bool& flag;
    explicit Advancing(bool& set) : flag(set) { flag = true; }
    ~Advancing() { flag = false; }
  } advancing(advancing_);
  Flight::Level reached = Flight::Level::done;  // by all earlier calls
  for (const auto& flight : flights_) {
    while (flight->level < reached && advance(*flight)) {
    }
    reached = std::min(reached, flight->level);
  }
  while (!flights_.empty() && flights_.front()->level == Flight::Level::done) flights_.pop_front();
}

bool NetworkBackend::advance(Flight& flight) {
  switch (flight.level) {
    case Flight::Level::inward:
      if (flight.inward != nullptr && !flight.inward->ready()) return false;
      flight.collective->release();
      flight.level = Flight::Level::network;
      return true;
    case Flight::Level::network: {
      try {
        if (!flight.ticket->done()) return false;
      } catch (const Error&) {
        if (!flight.collective->differs()) throw;
        mismatch_ = disagreement(flight);
        throw *mismatch_;
      }
      divide_mean(flight.call);
      flight.outward = parts_.node_groups.outward->start(is_compared(flight.call) ? comparison_of(flight.call)
                                                                                  : layout_.outward(flight.call));
      flight.level = Flight::Level::outward;
      return true;
    }
    case Flight::Level::outward:
      if (flight.outward != nullptr && !flight.outward->ready()) return false;
      flight.level = Flight::Level::done;
      return true;
    case Flight::Level::done: break;
  }
  return false;
}

void NetworkBackend::divide_mean(const Call& call) const {
  if (call.op != ReduceOp::mean || call.count == 0 || call.work() == CallKind::barrier) return;
  Range range;
  if (call.kind == CallKind::all_reduce) range = layout_.lane_range(call);
  if (call.kind == CallKind::reduce_scatter) {
    range = part_of(static_cast<std::int64_t>(call.count), parts_.members.me, parts_.members.size());
  }
  if (range.count() == 0) return;
  divide(call.dtype, static_cast<std::byte*>(call.data) + static_cast<std::size_t>(range.begin) * size_of(call.dtype),
         static_cast<std::size_t>(range.count()), parts_.members.size());
}

// The error names only the calls of this rank and of its counterparts on the other nodes, which are known here.
Error NetworkBackend::disagreement(const Flight& flight) const {
  const Wire::Turn turn = parts_.wire->take_turn();
  const auto calls = flight.collective->calls();
  std::vector<std::string> texts(parts_.members.ranks.size());
  for (std::size_t node = 0; node < calls.size(); ++node) {
    if (calls[node]) texts[static_cast<std::size_t>(lane_.peers[node])] = describe(*calls[node]);
  }
  return mismatch_error(texts, parts_.members, flight.sequence);
}

// Throws if a rank has left without making this call: a rank leaves only after its calls are done.
void NetworkBackend::check_peers(Flight& flight) {
  if (flight.level == Flight::Level::inward && flight.inward != nullptr) return flight.inward->check_peers();
  if (flight.level == Flight::Level::outward && flight.outward != nullptr) return flight.outward->check_peers();
  const auto left = std::ranges::find_if(parts_.members.ranks, [this](int rank) { return parts_.alarm->returned(rank); });
  if (left == parts_.members.ranks.end() || flight.level != Flight::Level::network) return;
  const auto now = Clock::now();
  if (!flight.peer_left) flight.peer_left = now;
  if (now - *flight.peer_left < last_delivery) return;
  const auto missing = ranks_without_call(flight);
  if (std::ranges::find(missing, *left) == missing.end()) return;
  context().check_failure();
  const Error error({.code = ErrorCode::peer_failed,
                     .message = fmt::format("rank {} left the group \"{}\" while rank {} waits for it in {}", *left,
                                            parts_.members.label, context().rank(), describe(flight.call, flight.sequence)),
                     .rank = *left,
                     .sequence = flight.sequence});
  context().record_failure(error);
  throw error;
}

std::vector<int> NetworkBackend::ranks_without_call(const Flight& flight) const {
  const Wire::Turn turn = parts_.wire->take_turn();
  const auto calls = flight.collective->calls();
  std::vector<int> missing;  // world ranks
  for (std::size_t node = 0; node < calls.size(); ++node) {
    if (calls[node] || node == static_cast<std::size_t>(lane_.node)) continue;
    for (const int rank : parts_.nodes.members[node]) missing.push_back(parts_.members.ranks[static_cast<std::size_t>(rank)]);
  }
  return missing;
}

ErrorFields NetworkBackend::describe_wait(const Flight& flight) const {
  const Operation* local = flight.level == Flight::Level::inward ? flight.inward.get() : flight.outward.get();
  if (local != nullptr) return local->describe_wait();
  const std::vector<int> missing = ranks_without_call(flight);
  const std::string where = missing.empty() ? "the network moves its data"
                                            : fmt::format("{} of other nodes have not called it", list_of_ranks(missing));
  return {.message = fmt::format("{} of group \"{}\"; {}", describe(flight.call, flight.sequence), parts_.members.label, where),
          .sequence = flight.sequence,
          .hint = "a rank that is behind is busy elsewhere, or took another path through the program"};
}

// Afterwards neither this node's ranks nor the wire access the caller's memory.
void NetworkBackend::abandon(Flight& flight) noexcept {
  if (flight.level == Flight::Level::done) return;
  if (flight.inward != nullptr && flight.level == Flight::Level::inward) flight.inward->abandon();
  flight.collective = nullptr;
  flight.ticket.reset();
  if (flight.outward != nullptr) flight.outward->abandon();
  flight.inward.reset();
  flight.outward.reset();
  std::erase_if(flights_, [&flight](const auto& other) { return other.get() == &flight; });
}

}  // namespace

std::shared_ptr<Backend> make_network_backend(NetworkParts parts, const NetworkOptions& options) {
  return std::make_shared<NetworkBackend>(std::move(parts), options);
}

}  // namespace trireme::comm
