#include "comm/mpi/process_platform.hpp"

#include <algorithm>
#include <utility>

#include "comm/mpi/mpi_link.hpp"
#include "comm/network/network_backend.hpp"
#include "comm/shared/lone_backend.hpp"
#include "comm/shared/segment_backend.hpp"

namespace trireme::comm {
namespace {

constexpr std::size_t staging_bytes = std::size_t{256} << 10;  // of a staging round: fits into the second-level cache

// Collective over the members only. Not freed before MPI_Finalize, since freeing is collective and a destructor is not.
MPI_Comm make_communicator(const Members& members) {
  MPI_Group world = MPI_GROUP_NULL;
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Comm communicator = MPI_COMM_NULL;
  check_mpi(MPI_Comm_group(MPI_COMM_WORLD, &world), "MPI_Comm_group");
  check_mpi(MPI_Group_incl(world, members.size(), members.ranks.data(), &group), "MPI_Group_incl");
  check_mpi(MPI_Comm_create_group(MPI_COMM_WORLD, group, 0, &communicator), "MPI_Comm_create_group");
  check_mpi(MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler");
  MPI_Group_free(&group);
  MPI_Group_free(&world);
  return communicator;
}

int index_of(const std::vector<int>& ranks, int rank) {
  return static_cast<int>(std::ranges::find(ranks, rank) - ranks.begin());
}

}  // namespace

ProcessPlatform::ProcessPlatform(MpiMailParts parts, std::shared_ptr<MpiTransport> transport, std::vector<int> neighbours,
                                 Algorithm algorithm)
    : parts_(std::move(parts)),
      transport_(std::move(transport)),
      neighbours_(std::move(neighbours)),
      algorithm_(algorithm),
      addresses_(std::make_shared<ProcessAddressSpace>()) {}

bool ProcessPlatform::is_neighbour(int world_rank) const { return node_rank(world_rank) >= 0; }

int ProcessPlatform::node_rank(int world_rank) const {
  const int index = index_of(neighbours_, world_rank);
  return index < static_cast<int>(neighbours_.size()) ? index : -1;
}

std::shared_ptr<Backend> ProcessPlatform::make_world() {
  const Members members = world_members(rank_in(MPI_COMM_WORLD), size_of(MPI_COMM_WORLD));
  return make([](std::string_view text) { return gather_texts(MPI_COMM_WORLD, text); }, members.ranks, members.me, members);
}

std::shared_ptr<Backend> ProcessPlatform::make_group(const std::shared_ptr<Backend>& parent, const Members& members) {
  std::vector<int> sharers;
  for (const int rank : members.ranks) sharers.push_back(index_of(parent->members().ranks, rank));
  return make([&](std::string_view text) { return Group(parent).gather_texts(text, members.label); }, sharers,
              parent->members().me, members);
}

// Makes one segment that the members of this node share: for the GroupControl of their group, or of the three node groups if
// the group spans nodes. All ranks of the exchange take part in every exchange, even if their own group needs none.
std::shared_ptr<Backend> ProcessPlatform::make(const Exchange& exchange, const std::vector<int>& sharers, int me,
                                               const Members& members) {
  Members here{.label = members.label, .ranks = {}, .me = 0};
  SharingPlan plan{.bytes = 0, .sharers = {}, .me = me};
  for (std::size_t index = 0; index < members.ranks.size(); ++index) {
    if (!is_neighbour(members.ranks[index])) continue;
    if (static_cast<int>(index) == members.me) here.me = here.size();
    here.ranks.push_back(members.ranks[index]);
    plan.sharers.push_back(sharers[index]);
  }
  const bool spans = here.size() < members.size();
  const std::size_t control = GroupControl::bytes(here.size(), staging_bytes);
  const std::size_t controls = spans ? 3 : 1;
  plan.bytes = controls * control;
  if (here.size() == 1) plan.sharers.clear();
  plan.on_create = [&](SharedSegment& segment) {
    segment.reserve(0, segment.bytes());
    for (std::size_t index = 0; index < controls; ++index) GroupControl::create(segment.data() + index * control, here.size());
  };
  const Sharing sharing = share_segment(exchange, plan);
  const std::vector<std::string> answers = exchange(sharing.segment != nullptr ? std::to_string(neighbours_.front()) : "");
  if (members.size() == 1) return std::make_shared<LoneBackend>(parts_.context, members);

  std::vector<int> node_ranks;
  for (const int rank : members.ranks) node_ranks.push_back(node_rank(rank));
  const Wire::Turn turn = parts_.wire->take_turn();
  auto mail = make_mpi_mail(make_communicator(members), parts_, members, node_ranks);
  if (!spans && sharing.segment != nullptr) return make_node_group(members, sharing.segment, 0, std::move(mail));

  std::vector<std::string> names;
  for (const int sharer : sharers) names.push_back(answers[static_cast<std::size_t>(sharer)]);
  const MPI_Comm data = make_communicator(members);
  NetworkParts parts{.context = parts_.context,
                     .platform = shared_from_this(),
                     .alarm = parts_.alarm,
                     .wire = parts_.wire,
                     .members = members,
                     .nodes = find_nodes(names, members.me),
                     .node_groups = {},
                     .calls = transport_->open(make_communicator(members)),
                     .data = transport_->open(data),
                     .mail = std::move(mail)};
  if (sharing.segment != nullptr) {
    parts.node_groups = {.inward = make_node_group(here, sharing.segment, 0, nullptr),
                         .outward = make_node_group(here, sharing.segment, control, nullptr),
                         .memory = make_node_group(here, sharing.segment, 2 * control, nullptr)};
  } else {
    const auto alone = std::make_shared<LoneBackend>(parts_.context, world_members(0, 1));
    parts.node_groups = {.inward = alone, .outward = alone, .memory = alone};
  }
  // Measured once, for the world group, which is made first: groups with copies of the same parameters then add in the same
  // order.
  if (!link_) link_ = measure_link(data, parts.nodes);
  return make_network_backend(std::move(parts), {.algorithm = algorithm_, .link = *link_});
}

std::shared_ptr<Backend> ProcessPlatform::make_node_group(const Members& members, const std::shared_ptr<SharedSegment>& segment,
                                                          std::size_t control, std::unique_ptr<Mail> mail) {
  std::byte* memory = segment->data() + control;
  SegmentBackend::Shared shared{
      .memory = {segment, memory},
      .control = GroupControl(memory, members.size(), staging_bytes),
      .node_ranks = {},
  };
  for (const int rank : members.ranks) shared.node_ranks.push_back(node_rank(rank));
  return std::make_shared<SegmentBackend>(parts_.context, shared_from_this(), members, std::move(shared), std::move(mail));
}

std::shared_ptr<device::MemoryResource> ProcessPlatform::memory(std::shared_ptr<Backend> group) {
  return make_process_memory(std::move(group), addresses_);
}

}  // namespace trireme::comm
