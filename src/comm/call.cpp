#include "comm/call.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace trireme::comm {

Call comparison_of(const Call& call) {
  Call comparison = call;
  comparison.share = {.kind = Kind::barrier, .op = call.op, .owners = {}};
  return comparison;
}

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::barrier: return "barrier";
    case Kind::all_reduce: return "all_reduce";
    case Kind::reduce_scatter: return "reduce_scatter";
    case Kind::all_gather: return "all_gather";
    case Kind::broadcast: return "broadcast";
  }
  return "unknown";
}

std::string_view name_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::sum: return "sum";
    case ReduceOp::min: return "min";
    case ReduceOp::max: return "max";
    case ReduceOp::mean: return "mean";
    case ReduceOp::fixed_sum: return "fixed_sum";
  }
  return "unknown";
}

std::string describe(const Call& call) {
  std::string text(name_of(call.kind));
  const auto amount = [&call] { return fmt::format("{} x {}", call.count, name_of(call.dtype)); };
  switch (call.kind) {
    case Kind::barrier: break;
    case Kind::all_reduce:
    case Kind::reduce_scatter: text += fmt::format("({}, {})", name_of(call.op), amount()); break;
    case Kind::all_gather: text += fmt::format("({})", amount()); break;
    case Kind::broadcast: text += fmt::format("({}, root {})", amount(), call.root); break;
  }
  if (!call.name.empty()) text += fmt::format(" \"{}\"", call.name);
  return text;
}

std::string describe(const Call& call, std::uint64_t sequence) { return fmt::format("#{} {}", sequence, describe(call)); }

Range part_of(std::int64_t count, int rank, int ranks) {
  constexpr std::int64_t block = 16;
  const std::int64_t blocks = (count + block - 1) / block;
  const auto boundary = [&](std::int64_t index) { return std::min(count, blocks * index / ranks * block); };
  return {boundary(rank), boundary(rank + 1)};
}

}  // namespace trireme::comm
