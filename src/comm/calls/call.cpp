#include "comm/calls/call.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

namespace trireme::comm {

Call comparison_of(const Call& call) {
  Call comparison = call;
  comparison.share = {.kind = CallKind::barrier, .op = call.op, .owners = {}};
  return comparison;
}

void write_name(std::string_view name, std::span<char> space) {
  const auto end = std::ranges::copy(name.substr(0, space.size()), space.begin()).out;
  std::fill(end, space.end(), '\0');
  if (name.size() <= space.size()) return;
  constexpr std::string_view gap = "...";
  constexpr std::size_t number_digits = 10;  // " #1a2b3c4d"
  const std::size_t kept = space.size() - gap.size() - number_digits;
  const std::size_t head = kept / 3;  // more of the end is kept, since most names differ there
  const std::string_view tail = name.substr(name.size() - (kept - head));
  auto to = std::ranges::copy(gap, space.begin() + static_cast<std::ptrdiff_t>(head)).out;
  to = std::ranges::copy(tail, to).out;
  fmt::format_to(to, " #{:08x}", std::hash<std::string_view>{}(name)&0xffffffffU);
}

std::string describe(const trireme::Call& call, std::uint64_t sequence) {
  return fmt::format("#{} {}", sequence, trireme::describe(call));
}

}  // namespace trireme::comm
