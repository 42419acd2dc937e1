#include "comm/wire/wire_requests.hpp"

#include <algorithm>
#include <functional>

namespace trireme::comm {

MPI_Request& WireRequests::add(Batch& batch) {
  ++batch.outstanding;
  batches_.push_back(&batch);
  return requests_.emplace_back(MPI_REQUEST_NULL);
}

void WireRequests::look() {
  share_done_ = 1;
  if (requests_.empty()) return;
  done_.resize(requests_.size());
  statuses_.resize(requests_.size());
  int count = 0;
  const int result = MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count, done_.data(), statuses_.data());
  if (result != MPI_ERR_IN_STATUS) check_mpi(result, "MPI_Testsome");
  share_done_ = static_cast<double>(std::max(count, 0)) / static_cast<double>(requests_.size());
  if (count <= 0) return;
  done_.resize(static_cast<std::size_t>(count));
  for (std::size_t index = 0; index < done_.size(); ++index) {
    Batch& batch = *batches_[static_cast<std::size_t>(done_[index])];
    --batch.outstanding;
    if (result == MPI_ERR_IN_STATUS && statuses_[index].MPI_ERROR != MPI_SUCCESS) batch.error = statuses_[index].MPI_ERROR;
  }
  std::ranges::sort(done_, std::greater<>());
  for (const int index : done_) {
    const auto place = static_cast<std::size_t>(index);
    requests_[place] = requests_.back();
    batches_[place] = batches_.back();
    requests_.pop_back();
    batches_.pop_back();
  }
}

std::vector<MPI_Request> WireRequests::give_up(Batch& batch) {
  std::vector<MPI_Request> taken;
  for (std::size_t index = requests_.size(); index-- > 0;) {
    if (batches_[index] != &batch) continue;
    taken.push_back(requests_[index]);
    requests_[index] = requests_.back();
    batches_[index] = batches_.back();
    requests_.pop_back();
    batches_.pop_back();
  }
  batch.outstanding = 0;
  return taken;
}

bool done(const WireRequests::Batch& batch) {
  check_mpi(batch.error, "a message between nodes");
  return batch.outstanding == 0;
}

}  // namespace trireme::comm
