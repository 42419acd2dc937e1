#include "comm/mpi/mpi_mail.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "comm/calls/receipt.hpp"

namespace trireme::comm {
namespace {

// A message is sent as this header and then the elements, in blocks of the header's size.
struct Header {
  std::uint64_t count = 0;
  DType dtype = DType::uint8;
  std::array<char, 55> name{};
};
constexpr std::size_t mail_block_bytes = sizeof(Header);
static_assert(mail_block_bytes == 64);

std::vector<std::byte> make_envelope(std::size_t bytes) {
  return std::vector<std::byte>(mail_block_bytes + (bytes + mail_block_bytes - 1) / mail_block_bytes * mail_block_bytes);
}

// A communicator of one group, and the other objects that its messages need.
class MpiMessages {
 public:
  MpiMessages(MPI_Comm communicator, MpiMailParts parts) : communicator_(communicator), parts_(std::move(parts)) {
    const Wire::Turn turn = wire().take_turn();
    check_mpi(MPI_Type_contiguous(static_cast<int>(mail_block_bytes), MPI_BYTE, &block_), "MPI_Type_contiguous");
    check_mpi(MPI_Type_commit(&block_), "MPI_Type_commit");
  }

  RankContext& context() { return *parts_.context; }
  Wire& wire() { return *parts_.wire; }
  MpiOutbox& outbox() { return *parts_.outbox; }
  bool left(int world_rank) const { return parts_.alarm->left(world_rank); }

  void send(std::vector<std::byte> envelope, int to, int tag, Correspondent receiver) {
    const Wire::Turn turn = wire().take_turn();
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Isend(envelope.data(), blocks(envelope), block_, to, tag, communicator_, &request), "MPI_Isend");
    outbox().add_send(std::move(envelope), request, receiver);
  }

  MPI_Request receive(std::vector<std::byte>& envelope, int from, int tag) {
    const Wire::Turn turn = wire().take_turn();
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Irecv(envelope.data(), blocks(envelope), block_, from, tag, communicator_, &request), "MPI_Irecv");
    return request;
  }

 private:
  static int blocks(const std::vector<std::byte>& envelope) { return static_cast<int>(envelope.size() / mail_block_bytes); }

  MPI_Comm communicator_;
  MpiMailParts parts_;
  MPI_Datatype block_ = MPI_DATATYPE_NULL;
};

// A receive under way. The rank must poll for it, since MPI does not announce messages.
class ReceiveByMpi final : public Operation, public Progress {
 public:
  ReceiveByMpi(std::shared_ptr<MpiMessages> messages, const Members& members, int sender_node_rank, const Call& message)
      : messages_(std::move(messages)),
        sender_node_rank_(sender_node_rank),
        receipt_(members, message),
        expected_(message),
        envelope_(make_envelope(message.bytes())),
        request_(messages_->receive(envelope_, message.peer, message.tag)) {
    context().add(this);
  }
  ~ReceiveByMpi() override { context().remove(this); }
  ReceiveByMpi(const ReceiveByMpi&) = delete;
  ReceiveByMpi& operator=(const ReceiveByMpi&) = delete;

  RankContext& context() override { return messages_->context(); }
  void advance() override {}
  bool needs_polling() const override { return request_ != MPI_REQUEST_NULL; }

  bool ready() override {
    if (request_ == MPI_REQUEST_NULL) return true;
    int done = 0;
    int result = MPI_SUCCESS;
    {
      const Wire::Turn turn = messages_->wire().take_turn();
      result = MPI_Test(&request_, &done, MPI_STATUS_IGNORE);
    }
    if (result == MPI_SUCCESS && done == 0) return false;
    request_ = MPI_REQUEST_NULL;
    Header header;
    std::memcpy(&header, envelope_.data(), sizeof(header));
    if (result != MPI_SUCCESS)
      header.count = std::max(header.count, expected_.count + 1);  // the message was longer, and MPI truncated it
    receipt_.check(header.count, header.dtype, {header.name.data(), strnlen(header.name.data(), header.name.size())});
    if (expected_.count > 0) std::memcpy(expected_.data, envelope_.data() + mail_block_bytes, expected_.bytes());
    return true;
  }

  void check_peers() override {
    const bool left = sender_node_rank_ < 0 ? messages_->left(receipt_.sender()) : context().node().left(sender_node_rank_);
    if (!left) return;
    const auto now = std::chrono::steady_clock::now();
    if (!left_since_) left_since_ = now;
    if (now - *left_since_ < last_delivery || ready()) return;
    context().check_failure();
    const Error error = receipt_.sender_left();
    context().record_failure(error);
    throw error;
  }

  ErrorFields describe_wait() const override { return receipt_.describe_wait(); }

  void abandon() noexcept override {
    if (request_ == MPI_REQUEST_NULL) return;
    const Wire::Turn turn = messages_->wire().take_turn();
    MPI_Cancel(&request_);  // has no effect if the message has begun to arrive, which may take forever
    int done = 0;
    MPI_Test(&request_, &done, MPI_STATUS_IGNORE);
    if (done == 0) messages_->outbox().add_abandoned_receive(std::move(envelope_), request_);
    request_ = MPI_REQUEST_NULL;
  }

 private:
  static constexpr std::chrono::milliseconds last_delivery{500};  // for messages that a rank sent before it left

  std::shared_ptr<MpiMessages> messages_;
  int sender_node_rank_;
  std::optional<std::chrono::steady_clock::time_point> left_since_;
  Receipt receipt_;
  Call expected_;
  std::vector<std::byte> envelope_;
  MPI_Request request_;
};

class MpiMail final : public Mail {
 public:
  MpiMail(MPI_Comm communicator, MpiMailParts parts, const Members& members, std::vector<int> node_ranks)
      : messages_(std::make_shared<MpiMessages>(communicator, std::move(parts))),
        members_(members),
        node_ranks_(std::move(node_ranks)) {}

  void send(const Call& message) override {
    Header header{.count = message.count, .dtype = message.dtype};
    write_name(message.name, header.name);
    std::vector<std::byte> envelope = make_envelope(message.bytes());
    std::memcpy(envelope.data(), &header, sizeof(header));
    if (message.count > 0) std::memcpy(envelope.data() + mail_block_bytes, message.data, message.bytes());
    const auto peer = static_cast<std::size_t>(message.peer);
    const Correspondent receiver{.rank = members_.ranks[peer], .node_rank = node_ranks_[peer]};
    messages_->send(std::move(envelope), message.peer, message.tag, receiver);
    if (receiver.node_rank < 0) return;
    full_fence();
    messages_->context().node().wake({&receiver.node_rank, 1});
  }

  std::unique_ptr<Operation> receive(const Call& message) override {
    return std::make_unique<ReceiveByMpi>(messages_, members_, node_ranks_[static_cast<std::size_t>(message.peer)], message);
  }

 private:
  std::shared_ptr<MpiMessages> messages_;
  Members members_;
  std::vector<int> node_ranks_;
};

}  // namespace

std::unique_ptr<Mail> make_mpi_mail(MPI_Comm communicator, MpiMailParts parts, const Members& members,
                                    std::vector<int> node_ranks) {
  return std::make_unique<MpiMail>(communicator, std::move(parts), members, std::move(node_ranks));
}

}  // namespace trireme::comm
