#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/tcp/socket.hpp"
#include "comm/written_call.hpp"

namespace trireme::comm {

// What ranks and the hub tell each other. All run the same program on the same kind of machine, so it travels as it lies in
// memory.
enum class FrameKind : std::uint32_t {
  hello,      // a rank comes: `rank`, of `size` ranks
  welcome,    // all have come
  members,    // a rank is in `group`; the world ranks of all members follow, as std::int32_t
  call,       // a collective: what is called and the work of it; its data follow
  result,     // of a call; its data follow
  mismatch,   // the members' calls differ; they follow, a line for each
  missing,    // a call has waited for long; the world ranks that have not made it follow, as text
  abandoned,  // `rank` has left without making a call
  letter,     // a message from `rank` of the group to `to`; its data follow
  failure,    // the first of the job, on `rank`; `to` prints it; its text follows
  farewell,   // `rank` leaves
};

struct FrameHeader {
  static constexpr std::uint32_t mark = 0x74727231;

  std::uint32_t magic = mark;
  FrameKind kind = FrameKind::hello;
  std::int32_t rank = 0;
  std::int32_t size = 0;
  std::int32_t to = 0;  // world rank
  std::int32_t tag = 0;
  std::int32_t exit_code = 0;
  Kind work = Kind::barrier;
  ErrorCode code = ErrorCode::internal;
  std::uint64_t group = 0;
  WrittenCall call = {};  // with the number in its group; of a letter the count, type and name
  std::uint64_t bytes = 0;
};

struct Frame {
  FrameHeader header;
  std::vector<std::byte> data;

  std::string text() const { return {reinterpret_cast<const char*>(data.data()), data.size()}; }
};

// False: the other side is gone.
bool send_frame(const Socket& socket, FrameHeader header, std::span<const std::byte> data = {});

std::optional<Frame> receive_frame(const Socket& socket);  // nothing: the other side is gone, or is none of ours

inline std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

}  // namespace trireme::comm
