#include "comm/network/network_layout.hpp"

#include <algorithm>
#include <numeric>

namespace trireme::comm {
namespace {

constexpr std::int64_t message_bytes = 48 << 10;  // below 64 KiB, up to which Open MPI sends eagerly over TCP

std::int64_t message_elements(const Call& call) { return message_bytes / static_cast<std::int64_t>(size_of(call.dtype)); }

std::uint64_t pieces(std::int64_t count, std::int64_t size) { return static_cast<std::uint64_t>((count + size - 1) / size); }

Range piece(Range range, std::uint64_t number, std::int64_t size) {
  const std::int64_t begin = std::min(range.end, range.begin + static_cast<std::int64_t>(number) * size);
  return {begin, std::min(range.end, begin + size)};
}

std::int64_t largest_part(const Call& call, int parts) {
  std::int64_t largest = 0;
  for (int part = 0; part < parts; ++part) {
    largest = std::max(largest, part_of(static_cast<std::int64_t>(call.count), part, parts).count());
  }
  return largest;
}

Call with(Call call, CallKind kind, std::span<const int> owners = {}) {
  const bool mean = call.op == ReduceOp::mean;  // divided once, at the end
  call.share = {.kind = kind, .op = mean ? ReduceOp::sum : call.op, .owners = owners};
  return call;
}

}  // namespace

NetworkLayout::NetworkLayout(const Nodes& nodes, int me, int ranks)
    : nodes_(nodes), me_(me), ranks_(ranks), lane_owners_(static_cast<std::size_t>(nodes.lanes)) {
  std::iota(lane_owners_.begin(), lane_owners_.end(), 0);
  const int here = static_cast<int>(nodes_.mine().size());
  for (int rank = 0; rank < ranks_; ++rank) part_owners_.push_back(nodes_.index_of(rank) % here);
}

Call NetworkLayout::inward(const Call& call) const {
  switch (call.kind) {
    case CallKind::all_reduce: return with(call, CallKind::reduce_scatter, lane_owners_);
    case CallKind::reduce_scatter: return with(call, CallKind::reduce_scatter, part_owners_);
    case CallKind::broadcast: {
      if (nodes_.node_of(call.peer) != nodes_.node) break;
      const auto& root = part_owners_[static_cast<std::size_t>(call.peer)];
      return with(call, CallKind::broadcast, {&root, 1});
    }
    case CallKind::all_gather:
    case CallKind::send:
    case CallKind::receive:
    case CallKind::barrier: break;
  }
  return comparison_of(call);
}

Call NetworkLayout::outward(const Call& call) const {
  switch (call.kind) {
    case CallKind::all_reduce: return with(call, CallKind::all_gather, lane_owners_);
    case CallKind::all_gather: return with(call, CallKind::all_gather, part_owners_);
    case CallKind::broadcast:
      if (nodes_.node_of(call.peer) == nodes_.node) break;
      return with(call, CallKind::all_gather, lane_owners_);
    case CallKind::reduce_scatter:
    case CallKind::send:
    case CallKind::receive:
    case CallKind::barrier: break;
  }
  return comparison_of(call);
}

Range NetworkLayout::lane_range(const Call& call) const {
  if (!nodes_.is_lane()) return {};
  return part_of(static_cast<std::int64_t>(call.count), nodes_.index, nodes_.lanes);
}

std::vector<int> NetworkLayout::lane_peers() const {
  std::vector<int> peers;
  for (const auto& ranks : nodes_.members) peers.push_back(ranks[static_cast<std::size_t>(nodes_.index)]);
  return peers;
}

ChunkedSchedule NetworkLayout::schedule(const Call& call, Algorithm algorithm) const {
  switch (call.kind) {
    case CallKind::send:
    case CallKind::receive:
    case CallKind::barrier: break;
    case CallKind::all_reduce: return all_reduce_schedule(call, algorithm);
    case CallKind::reduce_scatter: return scatter_schedule(call);
    case CallKind::all_gather: return gather_schedule(call);
    case CallKind::broadcast: return broadcast_schedule(call);
  }
  return {};
}

ChunkedSchedule NetworkLayout::all_reduce_schedule(const Call& call, Algorithm algorithm) const {
  const bool parts = algorithm != Algorithm::all_pairs;  // whether a message holds one node's part of a chunk, or all of it
  const std::int64_t chunk = message_elements(call) * (parts ? nodes_.size() : 1);
  ChunkedSchedule schedule{.chunks = pieces(largest_part(call, nodes_.lanes), chunk), .schedule = {}};
  schedule.schedule = [this, algorithm, chunk, range = lane_range(call)](std::uint64_t number) {
    if (!nodes_.is_lane()) return WireSchedule{};
    return comm::all_reduce_schedule(algorithm, lane_peers(), nodes_.node, piece(range, number, chunk));
  };
  return schedule;
}

// This rank sends the parts of some ranks on each other node, and reduces its own part from all nodes.
ChunkedSchedule NetworkLayout::scatter_schedule(const Call& call) const {
  const std::int64_t size = message_elements(call);
  ChunkedSchedule schedule{.chunks = pieces(largest_part(call, ranks_), size), .schedule = {}};
  schedule.schedule = [this, size, count = static_cast<std::int64_t>(call.count)](std::uint64_t number) {
    WireStep step{.sends = {}, .receives = {}, .reduces = true, .place = static_cast<std::size_t>(nodes_.node)};
    for (int rank = 0; rank < ranks_; ++rank) {
      if (nodes_.node_of(rank) == nodes_.node || part_owners_[static_cast<std::size_t>(rank)] != nodes_.index) continue;
      step.sends.push_back({rank, piece(part_of(count, rank, ranks_), number, size)});
    }
    for (int node = 0; node < nodes_.size(); ++node) {
      if (node == nodes_.node) continue;
      step.receives.push_back({nodes_.counterpart(node, me_), piece(part_of(count, me_, ranks_), number, size)});
    }
    return WireSchedule{step};
  };
  return schedule;
}

// The reverse of scatter_schedule(): sends this rank's part to one rank of each other node, which shares it there.
ChunkedSchedule NetworkLayout::gather_schedule(const Call& call) const {
  ChunkedSchedule schedule = scatter_schedule(call);
  schedule.schedule = [scatter = std::move(schedule.schedule)](std::uint64_t number) {
    const WireStep step = scatter(number).front();
    return WireSchedule{{.sends = step.receives, .receives = step.sends}};
  };
  return schedule;
}

ChunkedSchedule NetworkLayout::broadcast_schedule(const Call& call) const {
  const std::int64_t size = message_elements(call);
  ChunkedSchedule schedule{.chunks = pieces(largest_part(call, nodes_.lanes), size), .schedule = {}};
  schedule.schedule = [this, size, root = nodes_.node_of(call.peer), range = lane_range(call)](std::uint64_t number) {
    if (!nodes_.is_lane()) return WireSchedule{};
    return comm::broadcast_schedule(lane_peers(), nodes_.node, root, piece(range, number, size));
  };
  return schedule;
}

}  // namespace trireme::comm
