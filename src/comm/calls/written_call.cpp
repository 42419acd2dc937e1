#include "comm/calls/written_call.hpp"

#include <functional>
#include <span>

namespace trireme::comm {

WrittenCall write_call(const trireme::Call& call, std::uint64_t sequence) {
  WrittenCall written;
  written.sequence = sequence;
  written.count = call.count;
  written.name_hash = std::hash<std::string_view>{}(call.name);
  written.root = call.peer;
  written.kind = call.kind;
  written.op = call.op;
  written.dtype = call.dtype;
  write_name(call.name, std::span(written.name).first(written.name.size() - 1));
  return written;
}

bool same(const WrittenCall& a, const WrittenCall& b) {
  return a.sequence == b.sequence && a.count == b.count && a.name_hash == b.name_hash && a.root == b.root && a.kind == b.kind &&
         a.op == b.op && a.dtype == b.dtype;
}

std::string describe(const WrittenCall& call) {
  return describe(trireme::Call{.kind = call.kind,
                                .op = call.op,
                                .dtype = call.dtype,
                                .peer = call.root,
                                .count = call.count,
                                .name = call.name.data()},
                  call.sequence);
}

}  // namespace trireme::comm
