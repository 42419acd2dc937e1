#pragma once

#include <string>

#include "comm/calls/call.hpp"
#include "comm/calls/members.hpp"
#include "trireme/core/error.hpp"

namespace trireme::comm {

// The message that a receive expects, and the errors if another message or none arrives.
class Receipt {
 public:
  Receipt(const Members& members, const Call& message);

  void* data() const { return data_; }
  int sender() const { return sender_; }                                    // world rank
  void check(std::size_t count, DType dtype, std::string_view name) const;  // throws Error{rank_mismatch}
  Error sender_left() const;
  ErrorFields describe_wait() const;

 private:
  void* data_;
  std::size_t count_;
  DType dtype_;
  int sender_;  // world rank
  int me_;      // world rank
  std::string text_;
  std::string name_;
};

}  // namespace trireme::comm
