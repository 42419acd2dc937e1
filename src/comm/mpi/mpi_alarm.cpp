#include "comm/mpi/mpi_alarm.hpp"

#include <algorithm>
#include <utility>

namespace trireme::comm {
namespace {

std::vector<int> ranks_beside(const std::vector<int>& neighbours) {
  std::vector<int> others;
  for (int rank = 0; rank < size_of(MPI_COMM_WORLD); ++rank) {
    if (std::ranges::find(neighbours, rank) == neighbours.end()) others.push_back(rank);
  }
  return others;
}

}  // namespace

MpiAlarm::MpiAlarm(std::shared_ptr<RankContext> context, std::shared_ptr<Wire> wire, const std::vector<int>& neighbours)
    : Alarm(std::move(context), std::move(wire), ranks_beside(neighbours)) {
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &communicator_), "MPI_Comm_dup");
}

MpiAlarm::~MpiAlarm() {
  if (!sent_.empty()) new std::list<Sent>(std::move(sent_));  // never freed: MPI may still read them
}

void MpiAlarm::send(const Notice& notice) {
  Sent& sent = sent_.emplace_back();
  sent.notice = notice;
  sent.requests.assign(others().size(), MPI_REQUEST_NULL);
  for (std::size_t index = 0; index < others().size(); ++index) {
    check_mpi(MPI_Isend(&sent.notice, sizeof(Notice), MPI_BYTE, others()[index], 0, communicator_, &sent.requests[index]),
              "MPI_Isend");
  }
}

std::optional<Alarm::Notice> MpiAlarm::next() {
  int arrived = 0;
  MPI_Status status;
  check_mpi(MPI_Iprobe(MPI_ANY_SOURCE, 0, communicator_, &arrived, &status), "MPI_Iprobe");
  if (arrived != 0) {
    Notice notice;
    check_mpi(MPI_Recv(&notice, sizeof(notice), MPI_BYTE, status.MPI_SOURCE, 0, communicator_, MPI_STATUS_IGNORE), "MPI_Recv");
    return notice;
  }
  sent_.remove_if([](Sent& sent) {
    int done = 0;
    check_mpi(MPI_Testall(static_cast<int>(sent.requests.size()), sent.requests.data(), &done, MPI_STATUSES_IGNORE),
              "MPI_Testall");
    return done != 0;
  });
  return std::nullopt;
}

}  // namespace trireme::comm
