#pragma once

#include <memory>
#include <vector>

#include "comm/base/backend.hpp"
#include "comm/nccl/communication_stream.hpp"

namespace trireme::comm {

// The ranks of a host group, each with a GPU. Data on a GPU are copied to the host, go through the host group, and are copied
// back.
class StagedBackend : public Backend {
 public:
  StagedBackend(std::shared_ptr<Backend> host, MakeStream make_stream)
      : host_(std::move(host)), make_stream_(std::move(make_stream)), stream_(make_stream_()) {}

  const Members& members() const override { return host_->members(); }
  RankContext& context() override { return host_->context(); }
  std::unique_ptr<Operation> start(const Call& call) override;
  std::unique_ptr<Operation> receive(const Call& message) override;
  void send(const Call& message) override;
  std::shared_ptr<device::MemoryResource> memory() override { return stream_->gpu_memory(); }
  std::uint64_t bytes_sent() override { return host_->bytes_sent(); }
  bool on_one_node() const override { return host_->on_one_node(); }
  std::vector<std::vector<int>> nodes() const override { return host_->nodes(); }
  std::shared_ptr<Backend> make_group(const Members& members) override {
    return std::make_shared<StagedBackend>(host_->make_group(members), make_stream_);
  }

 protected:
  const std::shared_ptr<Backend>& host_backend() const { return host_; }
  const std::shared_ptr<CommunicationStream>& stream() const { return stream_; }

 private:
  std::shared_ptr<Backend> host_;
  MakeStream make_stream_;
  std::shared_ptr<CommunicationStream> stream_;
};

}  // namespace trireme::comm
