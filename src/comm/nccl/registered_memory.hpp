#pragma once

#include <memory>
#include <mutex>
#include <string_view>
#include <unordered_map>

#include "comm/nccl/communication_stream.hpp"
#include "comm/nccl/communicator.hpp"
#include "trireme/device/memory.hpp"

namespace trireme::comm {

// GPU memory that NCCL allocates; each block is registered with one communicator. For few large blocks: freed ones are not
// cached.
class RegisteredMemory final : public device::MemoryResource {
 public:
  // `communicator` is null in a group of one.
  RegisteredMemory(std::shared_ptr<const NcclApi> api, std::shared_ptr<CommunicationStream> stream,
                   std::weak_ptr<Communicator> communicator);

  std::string_view name() const noexcept override { return "nccl"; }
  bool on_host() const noexcept override { return false; }

 private:
  void* do_allocate(std::size_t bytes) override;
  void do_deallocate(void* block, std::size_t bytes) noexcept override;

  std::shared_ptr<const NcclApi> api_;
  std::shared_ptr<CommunicationStream> stream_;
  std::weak_ptr<Communicator> communicator_;
  std::mutex mutex_;
  std::unordered_map<void*, void*> registrations_;  // by block
};

}  // namespace trireme::comm
