#include "comm/calls/call.hpp"

#include <fmt/format.h>

namespace trireme::comm {

Call comparison_of(const Call& call) {
  Call comparison = call;
  comparison.share = {.kind = CallKind::barrier, .op = call.op, .owners = {}};
  return comparison;
}

std::string describe(const trireme::Call& call, std::uint64_t sequence) {
  return fmt::format("#{} {}", sequence, trireme::describe(call));
}

}  // namespace trireme::comm
