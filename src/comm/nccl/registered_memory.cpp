#include "comm/nccl/registered_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace trireme::comm {

RegisteredMemory::RegisteredMemory(std::shared_ptr<const NcclApi> api, std::shared_ptr<CommunicationStream> stream,
                                   std::weak_ptr<Communicator> communicator)
    : api_(std::move(api)), stream_(std::move(stream)), communicator_(std::move(communicator)) {}

void* RegisteredMemory::do_allocate(std::size_t bytes) {
  void* block = nullptr;
  const std::size_t size = std::max(bytes, device::alignment);
  const ncclResult_t result = api_->mem_alloc(&block, size);
  if (result != ncclSuccess) {
    throw Error({.code = ErrorCode::out_of_memory,
                 .message = fmt::format("the GPU has no {} bytes for NCCL", size),
                 .operation = "ncclMemAlloc",
                 .had = api_->get_error_string(result),
                 .hint = "use a smaller model or batch, or more ranks"});
  }
  if (const auto communicator = communicator_.lock()) {
    const std::lock_guard lock(mutex_);
    registrations_[block] = communicator->register_memory(block, size);
  }
  return block;
}

// Errors are ignored, since a deallocation must not throw.
void RegisteredMemory::do_deallocate(void* block, std::size_t) noexcept {
  stream_->wait_for_gpu();  // unlike cudaFree, ncclMemFree does not wait for work that uses the block
  const std::lock_guard lock(mutex_);
  const auto registration = registrations_.extract(block);
  if (const auto communicator = communicator_.lock(); communicator && registration) {
    communicator->deregister_memory(registration.mapped());
  }
  api_->mem_free(block);
}

}  // namespace trireme::comm
