#include "comm/tcp/frame.hpp"

#include <type_traits>

namespace trireme::comm {
namespace {

static_assert(std::is_trivially_copyable_v<FrameHeader>);
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 36;

}  // namespace

bool send_frame(const Socket& socket, FrameHeader header, std::span<const std::byte> data) {
  header.bytes = data.size();
  return socket.send(std::as_bytes(std::span(&header, 1))) && socket.send(data);
}

std::optional<Frame> receive_frame(const Socket& socket) {
  Frame frame;
  if (!socket.receive(std::as_writable_bytes(std::span(&frame.header, 1)))) return std::nullopt;
  if (frame.header.magic != FrameHeader::mark || frame.header.bytes > most_bytes) return std::nullopt;
  frame.data.resize(frame.header.bytes);
  if (!socket.receive(frame.data)) return std::nullopt;
  return frame;
}

}  // namespace trireme::comm
