#include "comm/process_platform.hpp"

#include <algorithm>
#include <utility>

#include "comm/lone_backend.hpp"
#include "comm/mpi_backend.hpp"
#include "comm/mpi_mail.hpp"
#include "comm/segment_backend.hpp"

namespace trireme::comm {
namespace {

constexpr std::size_t staging_bytes = std::size_t{256} << 10;  // a round of data out of reach: stays in the second-level cache

// Collective over the members only. Never freed before MPI_Finalize: freeing is collective, a destructor is not.
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

ProcessPlatform::ProcessPlatform(std::shared_ptr<RankContext> context, std::shared_ptr<MpiAlarm> alarm,
                                 std::vector<int> neighbours)
    : context_(std::move(context)),
      alarm_(std::move(alarm)),
      neighbours_(std::move(neighbours)),
      addresses_(std::make_shared<ProcessAddressSpace>()) {}

std::shared_ptr<Backend> ProcessPlatform::make_world() {
  const Members members = world_members(rank_in(MPI_COMM_WORLD), size_of(MPI_COMM_WORLD));
  return make([](std::string_view text) { return gather_texts(MPI_COMM_WORLD, text); }, members.ranks, members.me, members);
}

std::shared_ptr<Backend> ProcessPlatform::make_group(Backend& parent, const Members& members) {
  std::vector<int> sharers;
  for (const int rank : members.ranks) sharers.push_back(index_of(parent.members().ranks, rank));
  return make([&](std::string_view text) { return gather_texts(parent, text, members.label); }, sharers, parent.members().me,
              members);
}

std::shared_ptr<Backend> ProcessPlatform::make(const Exchange& exchange, const std::vector<int>& sharers, int me,
                                               const Members& members) {
  const bool on_this_node = std::ranges::all_of(
      members.ranks, [this](int rank) { return index_of(neighbours_, rank) < static_cast<int>(neighbours_.size()); });
  SharingPlan plan{.bytes = GroupControl::bytes(members.size(), staging_bytes), .sharers = {}, .me = me};
  if (on_this_node && members.size() > 1) plan.sharers = sharers;
  plan.on_create = [&](SharedSegment& segment) {
    segment.reserve(0, segment.bytes());
    GroupControl::create(segment.data(), members.size());
  };
  const Sharing sharing = share_segment(exchange, plan);
  if (members.size() == 1) return std::make_shared<LoneBackend>(context_, members);

  const MPI_Comm communicator = make_communicator(members);
  std::vector<int> node_ranks;
  for (const int rank : members.ranks) {
    const int index = index_of(neighbours_, rank);
    node_ranks.push_back(index < static_cast<int>(neighbours_.size()) ? index : -1);
  }
  auto mail = make_mpi_mail(communicator, context_, alarm_, members, node_ranks);
  if (sharing.segment == nullptr) {
    return make_mpi_backend(context_, shared_from_this(), alarm_, members, communicator, make_communicator(members),
                            std::move(mail));
  }
  SegmentBackend::Shared shared{
      .memory = {sharing.segment, sharing.segment->data()},
      .control = GroupControl(sharing.segment->data(), members.size(), staging_bytes),
      .node_ranks = std::move(node_ranks),
  };
  return std::make_shared<SegmentBackend>(context_, shared_from_this(), members, std::move(shared), std::move(mail));
}

std::shared_ptr<device::MemoryResource> ProcessPlatform::memory(std::shared_ptr<Backend> group) {
  return make_process_memory(std::move(group), addresses_);
}

}  // namespace trireme::comm
