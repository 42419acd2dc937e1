#pragma once

#include <vector>

#include "comm/mpi/mpi_calls.hpp"
#include "comm/wire/transport.hpp"

namespace trireme::comm {

// The MPI requests under way on all channels, tested together: any call of MPI makes the network library look at every
// connection, so testing all requests costs as much as testing one.
class MpiTransport final : public Transport {
 public:
  int open(MPI_Comm communicator);  // returns a channel; nothing else may use the communicator

  void post(const Route& to, std::span<const std::byte> data, Batch& batch) override;
  void receive(const Route& from, std::span<std::byte> buffer, Batch& batch) override;
  double test() override;
  bool cancel(Batch& batch, std::chrono::steady_clock::time_point end) noexcept override;

 private:
  struct Owner {
    Batch* batch = nullptr;
    bool receives = false;
  };
  void add(MPI_Request request, const Owner& owner);
  void remove(std::size_t place);

  std::vector<MPI_Comm> channels_;
  std::vector<MPI_Request> requests_;
  std::vector<Owner> owners_;  // by request
  std::vector<int> done_;
  std::vector<MPI_Status> statuses_;
};

}  // namespace trireme::comm
