#include "comm/calls/receipt.hpp"

#include <fmt/format.h>

namespace trireme::comm {

Receipt::Receipt(const Members& members, const Call& message)
    : data_(message.data),
      count_(message.count),
      dtype_(message.dtype),
      sender_(members.ranks[static_cast<std::size_t>(message.peer)]),
      me_(members.ranks[static_cast<std::size_t>(members.me)]),
      text_(fmt::format("receive({} x {} from rank {}, tag {}) in group \"{}\"", message.count, name_of(message.dtype), sender_,
                        message.tag, members.label)),
      name_(message.name) {}

void Receipt::check(std::size_t count, DType dtype, std::string_view name) const {
  if (count == count_ && dtype == dtype_) return;
  throw Error({.code = ErrorCode::rank_mismatch,
               .message = fmt::format("ranks {} and {} disagree on a message: {}", sender_, me_, text_),
               .rank = me_,
               .name = name_,
               .wanted = fmt::format("{} x {}", count_, name_of(dtype_)),
               .had = fmt::format("{} x {} \"{}\" sent", count, name_of(dtype), name)});
}

Error Receipt::sender_left() const {
  return Error({.code = ErrorCode::peer_failed,
                .message = fmt::format("rank {} left while rank {} waits for its message: {}", sender_, me_, text_),
                .rank = sender_,
                .name = name_});
}

ErrorFields Receipt::describe_wait() const {
  return {.message = fmt::format("{}: rank {} has not sent it", text_, sender_), .name = name_};
}

}  // namespace trireme::comm
