#include "comm/mpi/mpi_transport.hpp"

#include <algorithm>
#include <functional>

namespace trireme::comm {

int MpiTransport::open(MPI_Comm communicator) {
  channels_.push_back(communicator);
  return static_cast<int>(channels_.size()) - 1;
}

void MpiTransport::post(const Route& to, std::span<const std::byte> data, Batch& batch) {
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Isend(data.data(), static_cast<int>(data.size()), MPI_BYTE, to.peer, to.tag,
                      channels_[static_cast<std::size_t>(to.channel)], &request),
            "MPI_Isend");
  add(request, {.batch = &batch, .receives = false});
}

void MpiTransport::receive(const Route& from, std::span<std::byte> buffer, Batch& batch) {
  MPI_Request request = MPI_REQUEST_NULL;
  check_mpi(MPI_Irecv(buffer.data(), static_cast<int>(buffer.size()), MPI_BYTE, from.peer, from.tag,
                      channels_[static_cast<std::size_t>(from.channel)], &request),
            "MPI_Irecv");
  add(request, {.batch = &batch, .receives = true});
}

void MpiTransport::add(MPI_Request request, const Owner& owner) {
  ++owner.batch->outstanding;
  requests_.push_back(request);
  owners_.push_back(owner);
}

void MpiTransport::remove(std::size_t place) {
  requests_[place] = requests_.back();
  owners_[place] = owners_.back();
  requests_.pop_back();
  owners_.pop_back();
}

double MpiTransport::test() {
  if (requests_.empty()) return 1;
  const auto under_way = static_cast<double>(requests_.size());
  done_.resize(requests_.size());
  statuses_.resize(requests_.size());
  int count = 0;
  const int result = MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count, done_.data(), statuses_.data());
  if (result != MPI_ERR_IN_STATUS) check_mpi(result, "MPI_Testsome");
  if (count <= 0) return 0;
  done_.resize(static_cast<std::size_t>(count));
  for (std::size_t index = 0; index < done_.size(); ++index) {
    Batch& batch = *owners_[static_cast<std::size_t>(done_[index])].batch;
    --batch.outstanding;
    if (result == MPI_ERR_IN_STATUS && statuses_[index].MPI_ERROR != MPI_SUCCESS) {
      batch.failure = std::make_exception_ptr(mpi_error(statuses_[index].MPI_ERROR, "a message between nodes"));
    }
  }
  std::ranges::sort(done_, std::greater<>());
  for (const int index : done_) remove(static_cast<std::size_t>(index));
  return static_cast<double>(count) / under_way;
}

bool MpiTransport::cancel(Batch& batch, std::chrono::steady_clock::time_point end) noexcept {
  std::vector<MPI_Request> requests;
  std::vector<MPI_Request> receives;
  for (std::size_t place = requests_.size(); place-- > 0;) {
    if (owners_[place].batch != &batch) continue;
    (owners_[place].receives ? receives : requests).push_back(requests_[place]);
    remove(place);
  }
  batch.outstanding = 0;
  const std::size_t first_receive = requests.size();
  requests.insert(requests.end(), receives.begin(), receives.end());
  const auto all_done = [&requests] {
    int done = 0;
    MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE);
    return done != 0;
  };
  do {
    if (all_done()) return true;
  } while (std::chrono::steady_clock::now() < end);
  for (std::size_t place = first_receive; place < requests.size(); ++place) {
    if (requests[place] != MPI_REQUEST_NULL) MPI_Cancel(&requests[place]);  // has no effect if the message has begun to arrive
  }
  return all_done();
}

}  // namespace trireme::comm
