#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "comm/backend.hpp"
#include "comm/nccl/communication_stream.hpp"

namespace trireme::comm {

// The host's copy of a GPU's data.
class StagingBuffer {
 public:
  StagingBuffer(std::shared_ptr<CommunicationStream> stream, void* gpu, std::size_t bytes)
      : stream_(std::move(stream)), gpu_(gpu), bytes_(bytes), host_(std::make_unique_for_overwrite<std::byte[]>(bytes)) {}

  std::byte* host() { return host_.get(); }
  void read() { stream_->to_host(host_.get(), gpu_, bytes_); }
  void write() { stream_->to_gpu(gpu_, host_.get(), bytes_); }

 private:
  std::shared_ptr<CommunicationStream> stream_;
  void* gpu_;
  std::size_t bytes_;
  std::unique_ptr<std::byte[]> host_;
};

// A collective or receive on the host, whose result goes to the GPU.
class StagedOperation final : public Operation {
 public:
  StagedOperation(StagingBuffer buffer, std::unique_ptr<Operation> host) : buffer_(std::move(buffer)), host_(std::move(host)) {}

  RankContext& context() override { return host_->context(); }
  bool ready() override {
    if (written_) return true;
    if (!host_->ready()) return false;
    buffer_.write();
    written_ = true;
    return true;
  }
  void check_peers() override { host_->check_peers(); }
  ErrorFields describe_wait() const override { return host_->describe_wait(); }
  std::string wait_text() const override { return host_->wait_text(); }
  void abandon() noexcept override { host_->abandon(); }

 private:
  StagingBuffer buffer_;
  std::unique_ptr<Operation> host_;
  bool written_ = false;
};

}  // namespace trireme::comm
