#pragma once

#include <memory>

#include "comm/shared/mailboxes.hpp"

namespace trireme::comm {

// A group of one: every collective is an identity.
class LoneBackend final : public Backend {
 public:
  LoneBackend(std::shared_ptr<RankContext> context, Members members);

  const Members& members() const override { return members_; }
  RankContext& context() override { return *context_; }
  std::unique_ptr<Operation> start(const Call&) override { return nullptr; }
  std::unique_ptr<Operation> receive(const Call& message) override { return mail_->receive(message); }
  void send(const Call& message) override { mail_->send(message); }
  std::shared_ptr<device::MemoryResource> memory() override { return device::host_memory(); }
  std::shared_ptr<Backend> make_group(const Members& members) override;

 private:
  std::shared_ptr<RankContext> context_;
  Members members_;
  std::unique_ptr<Mail> mail_;
};

}  // namespace trireme::comm
