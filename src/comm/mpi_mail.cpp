#include "comm/mpi_mail.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <list>
#include <optional>
#include <utility>
#include <vector>

#include "comm/receipt.hpp"

namespace trireme::comm {
namespace {

// What goes over the wire: one header, then the elements, in blocks of its size.
struct Header {
  std::uint64_t count = 0;
  DType dtype = DType::uint8;
  std::array<char, 55> name{};
};
constexpr std::size_t block_bytes = sizeof(Header);
static_assert(block_bytes == 64);

std::vector<std::byte> make_envelope(std::size_t bytes) {
  return std::vector<std::byte>(block_bytes + (bytes + block_bytes - 1) / block_bytes * block_bytes);
}

// A communicator, and the sends that MPI has not finished.
class Postman final : public Progress {
 public:
  Postman(MPI_Comm communicator, std::shared_ptr<RankContext> context, std::shared_ptr<Wire> wire,
          std::shared_ptr<MpiAlarm> alarm)
      : communicator_(communicator), context_(std::move(context)), wire_(std::move(wire)), alarm_(std::move(alarm)) {
    const Wire::Turn turn = wire_->take_turn();
    check_mpi(MPI_Type_contiguous(static_cast<int>(block_bytes), MPI_BYTE, &block_), "MPI_Type_contiguous");
    check_mpi(MPI_Type_commit(&block_), "MPI_Type_commit");
    context_->add(this);
  }
  ~Postman() override {
    context_->remove(this);
    if (!sent_.empty()) new std::list<Sent>(std::move(sent_));  // never freed: MPI still reads what nobody received
  }
  Postman(const Postman&) = delete;
  Postman& operator=(const Postman&) = delete;

  RankContext& context() { return *context_; }
  Wire& wire() { return *wire_; }
  bool left(int world_rank) const { return alarm_->left(world_rank); }

  void send(std::vector<std::byte> envelope, int to, int tag) {
    const Wire::Turn turn = wire_->take_turn();
    Sent& sent = sent_.emplace_back();
    sent.envelope = std::move(envelope);
    check_mpi(MPI_Isend(sent.envelope.data(), blocks(sent.envelope), block_, to, tag, communicator_, &sent.request),
              "MPI_Isend");
  }

  MPI_Request receive(std::vector<std::byte>& envelope, int from, int tag) {
    const Wire::Turn turn = wire_->take_turn();
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Irecv(envelope.data(), blocks(envelope), block_, from, tag, communicator_, &request), "MPI_Irecv");
    ++receiving_;
    return request;
  }
  void end_receive() { --receiving_; }

  void advance() override {
    if (sent_.empty()) return;
    const Wire::Turn turn = wire_->try_turn();
    if (!turn) return;
    sent_.remove_if([](Sent& sent) {
      int done = 0;
      check_mpi(MPI_Test(&sent.request, &done, MPI_STATUS_IGNORE), "MPI_Test");
      return done != 0;
    });
  }
  bool needs_polling() const override { return receiving_ > 0 || !sent_.empty(); }

 private:
  struct Sent {
    std::vector<std::byte> envelope;
    MPI_Request request = MPI_REQUEST_NULL;
  };
  static int blocks(const std::vector<std::byte>& envelope) { return static_cast<int>(envelope.size() / block_bytes); }

  MPI_Comm communicator_;
  std::shared_ptr<RankContext> context_;
  std::shared_ptr<Wire> wire_;
  std::shared_ptr<MpiAlarm> alarm_;
  MPI_Datatype block_ = MPI_DATATYPE_NULL;
  std::list<Sent> sent_;
  int receiving_ = 0;
};

class ReceiveByMpi final : public Operation {
 public:
  ReceiveByMpi(std::shared_ptr<Postman> postman, const Members& members, int sender_node_rank, const Message& message)
      : postman_(std::move(postman)),
        sender_node_rank_(sender_node_rank),
        receipt_(members, message),
        expected_(message),
        envelope_(make_envelope(message.bytes())),
        request_(postman_->receive(envelope_, message.peer, message.tag)) {}

  RankContext& context() override { return postman_->context(); }

  bool ready() override {
    if (request_ == MPI_REQUEST_NULL) return true;
    int done = 0;
    int result = MPI_SUCCESS;
    {
      const Wire::Turn turn = postman_->wire().take_turn();
      result = MPI_Test(&request_, &done, MPI_STATUS_IGNORE);
    }
    if (result == MPI_SUCCESS && done == 0) return false;
    postman_->end_receive();
    request_ = MPI_REQUEST_NULL;
    Header header;
    std::memcpy(&header, envelope_.data(), sizeof(header));
    if (result != MPI_SUCCESS) header.count = std::max(header.count, expected_.count + 1);  // MPI cut a longer message
    receipt_.check(header.count, header.dtype, {header.name.data(), strnlen(header.name.data(), header.name.size())});
    if (expected_.count > 0) std::memcpy(expected_.data, envelope_.data() + block_bytes, expected_.bytes());
    return true;
  }

  void check_peers() override {
    const bool left = sender_node_rank_ < 0 ? postman_->left(receipt_.sender()) : context().node().left(sender_node_rank_);
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
    const Wire::Turn turn = postman_->wire().take_turn();
    MPI_Cancel(&request_);
    MPI_Wait(&request_, MPI_STATUS_IGNORE);
    postman_->end_receive();
  }

 private:
  static constexpr std::chrono::milliseconds last_delivery{500};  // what a rank sent before it left may still be on its way

  std::shared_ptr<Postman> postman_;
  int sender_node_rank_;
  std::optional<std::chrono::steady_clock::time_point> left_since_;
  Receipt receipt_;
  Message expected_;
  std::vector<std::byte> envelope_;
  MPI_Request request_;
};

class MpiMail final : public Mail {
 public:
  MpiMail(MPI_Comm communicator, std::shared_ptr<RankContext> context, std::shared_ptr<Wire> wire,
          std::shared_ptr<MpiAlarm> alarm, const Members& members, std::vector<int> node_ranks)
      : postman_(std::make_shared<Postman>(communicator, std::move(context), std::move(wire), std::move(alarm))),
        members_(members),
        node_ranks_(std::move(node_ranks)) {}

  void send(const Message& message) override {
    Header header{.count = message.count, .dtype = message.dtype};
    std::copy_n(message.name.data(), std::min(message.name.size(), header.name.size()), header.name.data());
    std::vector<std::byte> envelope = make_envelope(message.bytes());
    std::memcpy(envelope.data(), &header, sizeof(header));
    if (message.count > 0) std::memcpy(envelope.data() + block_bytes, message.data, message.bytes());
    postman_->send(std::move(envelope), message.peer, message.tag);
    const int receiver = node_ranks_[static_cast<std::size_t>(message.peer)];
    if (receiver < 0) return;
    full_fence();
    postman_->context().node().wake({&receiver, 1});
  }

  std::unique_ptr<Operation> receive(const Message& message) override {
    return std::make_unique<ReceiveByMpi>(postman_, members_, node_ranks_[static_cast<std::size_t>(message.peer)], message);
  }

 private:
  std::shared_ptr<Postman> postman_;
  Members members_;
  std::vector<int> node_ranks_;
};

}  // namespace

std::unique_ptr<Mail> make_mpi_mail(MPI_Comm communicator, std::shared_ptr<RankContext> context, std::shared_ptr<Wire> wire,
                                    std::shared_ptr<MpiAlarm> alarm, const Members& members, std::vector<int> node_ranks) {
  return std::make_unique<MpiMail>(communicator, std::move(context), std::move(wire), std::move(alarm), members,
                                   std::move(node_ranks));
}

}  // namespace trireme::comm
