#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <thread>

#include "comm/flight/flight.hpp"
#include "comm/launch/cores.hpp"
#include "comm/launch/launch.hpp"
#include "comm/launch/node_watch.hpp"
#include "comm/mpi/mpi_alarm.hpp"
#include "comm/mpi/mpi_session.hpp"
#include "comm/mpi/process_platform.hpp"
#include "trireme/core/parse_number.hpp"

namespace trireme::comm {
namespace {

struct Node {
  std::shared_ptr<NodeControl> control;
  std::vector<int> neighbours;  // world ranks by node rank
  int node_rank = 0;
  int ranks_on_my_cores = 1;
  int ranks_on_machine = 1;
};

bool overlap(const cpu_set_t& a, const cpu_set_t& b) {
  cpu_set_t both;
  CPU_AND(&both, &a, &b);
  return CPU_COUNT(&both) > 0;
}

int count_ranks_on(const cpu_set_t& mine, MPI_Comm node) {
  int ranks = 0;
  for (const std::string& text : gather_texts(node, {reinterpret_cast<const char*>(&mine), sizeof(mine)})) {
    cpu_set_t other;
    std::memcpy(&other, text.data(), sizeof(other));
    ranks += overlap(mine, other) ? 1 : 0;
  }
  return ranks;
}

// TRIREME_RANKS_PER_NODE divides a node into several, for tests. Data between them go over the network.
MPI_Comm split_node(MPI_Comm node) {
  const char* text = std::getenv("TRIREME_RANKS_PER_NODE");
  if (text == nullptr) return node;
  const int ranks = parse_number<int>(text).value_or(0);
  require(ranks > 0, "TRIREME_RANKS_PER_NODE is a number of ranks above 0, not \"{}\"", text);
  MPI_Comm part = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split(node, rank_in(node) / ranks, rank_in(node), &part), "MPI_Comm_split");
  return part;
}

// Finds the ranks of this node and makes the memory that they share; a rank that can't share is a node of its own.
Node join_node(const cpu_set_t& cores) {
  const int world_rank = rank_in(MPI_COMM_WORLD);
  MPI_Comm communicator = MPI_COMM_NULL;
  check_mpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, world_rank, MPI_INFO_NULL, &communicator),
            "MPI_Comm_split_type");
  Node node;
  node.ranks_on_my_cores = count_ranks_on(cores, communicator);
  node.ranks_on_machine = size_of(communicator);
  communicator = split_node(communicator);
  node.node_rank = rank_in(communicator);
  const Exchange exchange = [communicator](std::string_view text) { return gather_texts(communicator, text); };
  for (const std::string& text : exchange(std::to_string(world_rank))) node.neighbours.push_back(std::stoi(text));

  const int ranks = static_cast<int>(node.neighbours.size());
  SharingPlan plan{.bytes = NodeControl::bytes(ranks), .sharers = {}, .me = node.node_rank};
  for (int rank = 0; rank < ranks; ++rank) plan.sharers.push_back(rank);
  plan.on_create = [ranks](SharedSegment& segment) {
    segment.reserve(0, segment.bytes());
    NodeControl::create(segment.data(), ranks);
  };
  const Sharing sharing = share_segment(exchange, plan);
  if (sharing.segment != nullptr) {
    node.control = {sharing.segment, NodeControl::find(sharing.segment->data())};
  } else {
    node = {.control = make_node_control(1),
            .neighbours = {world_rank},
            .ranks_on_my_cores = node.ranks_on_my_cores,
            .ranks_on_machine = node.ranks_on_machine};
  }
  return node;
}

}  // namespace

int launch_mpi(const LaunchOptions& options, const std::function<int(Group)>& main) {
  MpiSession session(options.deadline);
  require_whole_world(size_of(MPI_COMM_WORLD), std::getenv);
  const cpu_set_t cores = own_cores();
  const Node node = join_node(cores);
  const int core_count = usable_cores(cores, node.ranks_on_my_cores, node.ranks_on_machine);
  set_threads(threads_of_rank(core_count, node.ranks_on_my_cores, options.threads_per_rank));
  const auto context =
      std::make_shared<RankContext>(RankContext::Place{.rank = rank_in(MPI_COMM_WORLD),
                                                       .node_rank = node.node_rank,
                                                       .shares_all = node.control->ranks() == size_of(MPI_COMM_WORLD),
                                                       .shares_cores = node.ranks_on_my_cores > core_count,
                                                       .deadline = options.deadline},
                                    node.control);
  context->note_process();
  const auto transport = std::make_shared<MpiTransport>();
  const auto wire = std::make_shared<Wire>(context, options.progress, transport);
  const auto alarm = std::make_shared<MpiAlarm>(context, wire, node.neighbours);
  const auto outbox = std::make_shared<MpiOutbox>(context, wire, alarm);
  const auto platform =
      std::make_shared<ProcessPlatform>(MpiMailParts{.context = context, .wire = wire, .alarm = alarm, .outbox = outbox},
                                        transport, node.neighbours, options.algorithm);
  const Exchange exchange = [](std::string_view text) { return gather_texts(MPI_COMM_WORLD, text); };
  std::optional<NodeWatch> watch;
  if (node.control->ranks() < size_of(MPI_COMM_WORLD)) watch.emplace(context, exchange, node.node_rank == 0);
  const std::shared_ptr<Backend> world = platform->make_world();
  const int code = run_rank(*context, world, [&](const Group& group) {
    context->record_to(open_flight(options.flight_directory, group.rank(), group.size(), exchange));
    return main(Group(world));
  });
  outbox->drain();
  return session.finish(*context, *alarm, code, [&] {
    if (watch) watch->look([&alarm](int rank) { return alarm->left(rank); });
  });
}

}  // namespace trireme::comm
