#include "comm/nccl/staged_backend.hpp"

#include <utility>

namespace trireme::comm {
namespace {

// The host's copy of a GPU's data.
class StagingBuffer {
 public:
  StagingBuffer(std::shared_ptr<CommunicationStream> stream, void* gpu, std::size_t bytes)
      : stream_(std::move(stream)), gpu_(gpu), host_(std::make_unique<device::Storage>(stream_->staging_memory(), bytes)) {}

  void* host() { return host_->data(); }
  void read() { stream_->to_host(host_->data(), gpu_, host_->bytes()); }
  void write() { stream_->to_gpu(gpu_, host_->data(), host_->bytes()); }

 private:
  std::shared_ptr<CommunicationStream> stream_;
  void* gpu_;
  std::unique_ptr<device::Storage> host_;
};

// A collective or receive on the host with a result that goes to the GPU.
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

}  // namespace

std::unique_ptr<Operation> StagedBackend::start(const Call& call) {
  if (!stream_->reaches(call.data)) return host_->start(call);
  if (members().size() == 1) return nullptr;
  StagingBuffer buffer(stream_, call.data, call.bytes());
  buffer.read();
  Call staged = call;
  staged.data = buffer.host();
  staged.flight_number = 0;
  auto operation = host_->start(staged);
  return std::make_unique<StagedOperation>(std::move(buffer), std::move(operation));
}

std::unique_ptr<Operation> StagedBackend::receive(const Call& message) {
  if (!stream_->reaches(message.data)) return host_->receive(message);
  StagingBuffer buffer(stream_, message.data, message.bytes());
  Call staged = message;
  staged.data = buffer.host();
  auto operation = host_->receive(staged);
  return std::make_unique<StagedOperation>(std::move(buffer), std::move(operation));
}

void StagedBackend::send(const Call& message) {
  if (!stream_->reaches(message.data)) return host_->send(message);
  StagingBuffer buffer(stream_, message.data, message.bytes());
  buffer.read();
  Call staged = message;
  staged.data = buffer.host();
  host_->send(staged);
}

}  // namespace trireme::comm
