#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "comm/calls/written_call.hpp"
#include "comm/tcp/socket.hpp"
#include "trireme/core/error.hpp"

namespace trireme::comm {

// What ranks and the hub tell each other. All run the same program on the same kind of machine, so it travels as it lies in
// memory.
enum class FrameKind : std::uint32_t {
  challenge,  // the hub to whoever comes: a random number follows
  hello,      // a rank's answer: `rank`, of `size` ranks; its random number and its proof that it knows the job's secret follow
  welcome,    // all have come; the hub's proof that it knows the secret too follows
  members,    // a rank is in `group`; the world ranks of all members follow, as std::int32_t
  call,       // a collective: what is called and the work of it; its data follow
  result,     // of a call; its data follow
  mismatch,   // the members' calls differ, and `to` prints it; they follow, a line for each
  missing,    // a call has waited for long; the world ranks that have not made it follow, as text
  abandoned,  // `rank` has left without making a call
  letter,     // a message from `rank` of the group to `to`, which is its rank `size`; its data follow
  failure,    // the first of the job, on `rank`; `to` prints it; its text follows
  farewell,   // `rank` leaves
};

struct FrameHeader {
  static constexpr std::uint32_t mark = 0x74727232;

  std::uint32_t magic = mark;
  FrameKind kind = FrameKind::hello;
  std::int32_t rank = 0;
  std::int32_t size = 0;
  std::int32_t to = 0;  // world rank
  std::int32_t tag = 0;
  std::int32_t exit_code = 0;
  CallKind work = CallKind::barrier;
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

inline constexpr std::uint64_t most_frame_bytes = std::uint64_t{1} << 36;  // of data

// Makes frames of bytes as they come. It takes no more than twice the memory of what has come, whatever a header announces.
class FrameParser {
 public:
  explicit FrameParser(std::uint64_t most_bytes = most_frame_bytes) : most_bytes_(most_bytes) {}

  bool add(std::span<const std::byte> bytes);  // false: these are no frames; nothing more may be added
  std::optional<Frame> next();

 private:
  void end_frame();

  std::uint64_t most_bytes_;
  Frame frame_;
  std::size_t header_bytes_ = 0;
  std::deque<Frame> frames_;
};

// A frame, as bytes.
std::vector<std::byte> write_frame(FrameHeader header, std::span<const std::byte> data);

// One end of a connection on which nobody waits: what does not fit into the socket stays until it does.
class FrameConnection {
 public:
  FrameConnection() = default;
  explicit FrameConnection(Socket socket, std::uint64_t most_bytes = most_frame_bytes)
      : socket_(std::move(socket)), parser_(most_bytes) {}

  explicit operator bool() const { return static_cast<bool>(socket_); }
  const Socket& socket() const { return socket_; }

  bool receive();  // what has come; false: the other side is gone, or is none of ours
  std::optional<Frame> next() { return parser_.next(); }

  void send(const FrameHeader& header, std::span<const std::byte> data = {});
  void send_on();
  bool has_unsent() const { return !unsent_.empty(); }
  void allow_large_frames() { parser_ = FrameParser(); }

 private:
  Socket socket_;
  FrameParser parser_;
  std::deque<std::vector<std::byte>> unsent_;
  std::size_t sent_ = 0;  // bytes of the first
};

// Waits until all is sent. False: the other side is gone, or takes nothing.
bool send_frame(const Socket& socket, const FrameHeader& header, std::span<const std::byte> data = {});

inline std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

}  // namespace trireme::comm
