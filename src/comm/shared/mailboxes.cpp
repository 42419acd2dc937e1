#include "comm/shared/mailboxes.hpp"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "comm/calls/receipt.hpp"

namespace trireme::comm {

void Mailboxes::put(const Key& key, Letter letter) {
  const std::lock_guard lock(mutex_);
  Box& box = boxes_[key];
  box.letters.emplace(box.sent++, std::move(letter));
}

std::uint64_t Mailboxes::ticket(const Key& key) {
  const std::lock_guard lock(mutex_);
  return boxes_[key].asked++;
}

std::optional<Mailboxes::Letter> Mailboxes::take(const Key& key, std::uint64_t ticket) {
  const std::lock_guard lock(mutex_);
  auto letter = boxes_[key].letters.extract(ticket);
  if (letter.empty()) return std::nullopt;
  return std::move(letter.mapped());
}

namespace {

class ReceiveFromBox final : public Operation {
 public:
  ReceiveFromBox(std::shared_ptr<Mailboxes> boxes, std::shared_ptr<RankContext> context, const Members& members,
                 int sender_node_rank, const Call& message)
      : boxes_(std::move(boxes)),
        context_(std::move(context)),
        receipt_(members, message),
        sender_node_rank_(sender_node_rank),
        key_(message.peer, members.me, message.tag),
        ticket_(boxes_->ticket(key_)) {}

  RankContext& context() override { return *context_; }

  bool ready() override {
    if (received_) return true;
    const auto letter = boxes_->take(key_, ticket_);
    if (!letter) return false;
    received_ = true;
    receipt_.check(letter->count, letter->dtype, letter->name);
    if (!letter->bytes.empty()) std::memcpy(receipt_.data(), letter->bytes.data(), letter->bytes.size());
    return true;
  }

  void check_peers() override {
    if (!context_->node().left(sender_node_rank_) || ready()) return;
    context_->check_failure();
    const Error error = receipt_.sender_left();
    context_->record_failure(error);
    throw error;
  }

  ErrorFields describe_wait() const override { return receipt_.describe_wait(); }
  void abandon() noexcept override {}  // only this rank accesses the buffer

 private:
  std::shared_ptr<Mailboxes> boxes_;
  std::shared_ptr<RankContext> context_;
  Receipt receipt_;
  int sender_node_rank_;
  Mailboxes::Key key_;
  std::uint64_t ticket_;
  bool received_ = false;
};

class BoxMail final : public Mail {
 public:
  BoxMail(std::shared_ptr<Mailboxes> boxes, std::shared_ptr<RankContext> context, const Members& members,
          std::vector<int> node_ranks)
      : boxes_(std::move(boxes)), context_(std::move(context)), members_(members), node_ranks_(std::move(node_ranks)) {}

  void send(const Call& message) override {
    const auto* data = static_cast<const std::byte*>(message.data);
    boxes_->put({members_.me, message.peer, message.tag}, {.bytes = std::vector<std::byte>(data, data + message.bytes()),
                                                           .count = message.count,
                                                           .dtype = message.dtype,
                                                           .name = std::string(message.name)});
    const int receiver = node_ranks_[static_cast<std::size_t>(message.peer)];
    context_->node().note_change(context_->node_rank());
    full_fence();
    context_->node().wake({&receiver, 1});
  }

  std::unique_ptr<Operation> receive(const Call& message) override {
    const int sender = node_ranks_[static_cast<std::size_t>(message.peer)];
    return std::make_unique<ReceiveFromBox>(boxes_, context_, members_, sender, message);
  }

 private:
  std::shared_ptr<Mailboxes> boxes_;
  std::shared_ptr<RankContext> context_;
  Members members_;
  std::vector<int> node_ranks_;
};

}  // namespace

std::unique_ptr<Mail> open_mail(std::shared_ptr<Mailboxes> boxes, std::shared_ptr<RankContext> context, const Members& members,
                                std::vector<int> node_ranks) {
  return std::make_unique<BoxMail>(std::move(boxes), std::move(context), members, std::move(node_ranks));
}

}  // namespace trireme::comm
