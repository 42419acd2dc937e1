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

// The messages between ranks and the hub. All run the same program on the same kind of machine, so frames are sent as they lie
// in memory. A frame's data follow its header.
enum class FrameKind : std::uint32_t {
  challenge,  // from the hub to a new connection; data: a random number
  hello,      // the answer of `rank` of `size` ranks; data: its random number, and its proof that it knows the job's secret
  welcome,    // all ranks have connected; data: the hub's proof that it knows the secret
  members,    // a rank is in `group`; data: the world ranks of all members, as std::int32_t
  call,       // a collective: the call and its work; data: those of the call
  result,     // of a call; data: its result
  mismatch,   // the members' calls differ, and `to` prints the error; data: the calls, one per line
  missing,    // a call has waited long; data: the world ranks that have not made it, as text
  abandoned,  // `rank` has left without making a call
  letter,     // a message from `rank` of the group to world rank `to`, which is group rank `size`; data: those of the message
  failure,    // the first failure of the job, on `rank`; `to` prints it; data: its text
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
  WrittenCall call = {};  // with its number in the group; of a letter only count, type and name
  std::uint64_t bytes = 0;
};

struct Frame {
  FrameHeader header;
  std::vector<std::byte> data;

  std::string text() const { return {reinterpret_cast<const char*>(data.data()), data.size()}; }
};

inline constexpr std::uint64_t most_frame_bytes = std::uint64_t{1} << 36;  // of data

// Parses frames from bytes as they arrive. It uses at most twice the memory of the bytes received, whatever size a header
// announces.
class FrameParser {
 public:
  explicit FrameParser(std::uint64_t most_bytes = most_frame_bytes) : most_bytes_(most_bytes) {}

  bool add(std::span<const std::byte> bytes);  // false if the bytes are not frames; then add nothing more
  std::optional<Frame> next();

 private:
  void end_frame();

  std::uint64_t most_bytes_;
  Frame frame_;
  std::size_t header_bytes_ = 0;
  std::deque<Frame> frames_;
};

// The bytes of a frame.
std::vector<std::byte> write_frame(FrameHeader header, std::span<const std::byte> data);

// One end of a connection without blocking: data that do not fit into the socket are kept until they do.
class FrameConnection {
 public:
  FrameConnection() = default;
  explicit FrameConnection(Socket socket, std::uint64_t most_bytes = most_frame_bytes)
      : socket_(std::move(socket)), parser_(most_bytes) {}

  explicit operator bool() const { return static_cast<bool>(socket_); }
  const Socket& socket() const { return socket_; }

  bool receive();  // takes the bytes that have arrived; false if the other side has closed, or sends no frames
  std::optional<Frame> next() { return parser_.next(); }

  void send(const FrameHeader& header, std::span<const std::byte> data = {});
  void send_on();
  bool has_unsent() const { return !unsent_.empty(); }
  void allow_large_frames() { parser_ = FrameParser(); }

 private:
  Socket socket_;
  FrameParser parser_;
  std::deque<std::vector<std::byte>> unsent_;
  std::size_t sent_ = 0;  // bytes of the first frame that are sent
};

// Waits until the frame is sent. False if the other side has closed, or does not read.
bool send_frame(const Socket& socket, const FrameHeader& header, std::span<const std::byte> data = {});

inline std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

}  // namespace trireme::comm
