#pragma once

#include <memory>

#include "comm/shared/mailboxes.hpp"
#include "comm/shared/platform.hpp"

namespace trireme::comm {

// The objects that the threads of one group share.
struct ThreadGroup {
  explicit ThreadGroup(int ranks);
  std::shared_ptr<std::byte> memory;  // of its GroupControl
  std::shared_ptr<Mailboxes> boxes;
};

class ThreadPlatform final : public Platform, public std::enable_shared_from_this<ThreadPlatform> {
 public:
  explicit ThreadPlatform(std::shared_ptr<RankContext> context) : context_(std::move(context)) {}

  std::shared_ptr<Backend> join(const Members& members, const std::shared_ptr<ThreadGroup>& group);

  const AddressSpace& addresses() const override { return addresses_; }
  std::shared_ptr<Backend> make_group(const std::shared_ptr<Backend>& parent, const Members& members) override;
  std::shared_ptr<device::MemoryResource> memory(std::shared_ptr<Backend>) override { return device::host_memory(); }

 private:
  std::shared_ptr<RankContext> context_;
  ThreadAddressSpace addresses_;
};

}  // namespace trireme::comm
