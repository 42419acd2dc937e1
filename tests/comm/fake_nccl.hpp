#pragma once

#include <atomic>
#include <memory>

#include "comm/nccl/nccl_backend.hpp"

namespace trireme::test {

// A fake of NCCL and of GPUs: ranks are threads, a stream is a thread that runs its work in order, and a
// collective on it waits for the other ranks as on GPUs.
std::shared_ptr<const comm::NcclApi> fake_nccl();
std::shared_ptr<comm::CommunicationStream> make_fake_stream();

Group fake_nccl_group(const Group& host);
Group fake_staged_group(const Group& host);

// While it lives, the work that this thread gives to fake GPUs is recorded and not done, and its streams can't be queried.
class FakeCapture {
 public:
  FakeCapture();
  ~FakeCapture();
  FakeCapture(const FakeCapture&) = delete;
  FakeCapture& operator=(const FakeCapture&) = delete;
};

// For the communicator that this thread made last.
void break_last_communicator(ncclResult_t error);  // NCCL finds this error
void break_next_communicator(ncclResult_t error);  // while this thread makes it
void wait_for_last_stream();                       // as cudaStreamSynchronize does

inline std::atomic<int> fake_aborts = 0;  // of communicators with work under way

}  // namespace trireme::test
