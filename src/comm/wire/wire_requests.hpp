#pragma once

#include <vector>

#include "comm/wire/mpi_calls.hpp"

namespace trireme::comm {

// MPI requests under way, of all jobs of a wire. One look at all of them costs as much as one at any of them: a call of MPI
// makes the network library look at every connection.
class WireRequests {
 public:
  // The requests of one step of a job. They stay where they are until they are done or given up.
  struct Batch {
    int outstanding = 0;
    int error = MPI_SUCCESS;
  };

  MPI_Request& add(Batch& batch);                    // a place for the request that the caller starts
  void look();                                       // finds out which are done
  double share_done() const { return share_done_; }  // of those that were under way, at the last look; 1 where none were
  std::vector<MPI_Request> give_up(Batch& batch);    // takes the batch's requests out, done or not

 private:
  std::vector<MPI_Request> requests_;
  std::vector<Batch*> batches_;  // by request
  std::vector<int> done_;
  std::vector<MPI_Status> statuses_;
  double share_done_ = 1;
};

bool done(const WireRequests::Batch& batch);  // throws what MPI says where one failed

}  // namespace trireme::comm
