#include "comm/tcp/frame.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>
#include <utility>

namespace trireme::comm {
namespace {

static_assert(std::is_trivially_copyable_v<FrameHeader>);

}  // namespace

bool FrameParser::add(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    if (header_bytes_ < sizeof(FrameHeader)) {
      const std::size_t count = std::min(sizeof(FrameHeader) - header_bytes_, bytes.size());
      std::memcpy(reinterpret_cast<std::byte*>(&frame_.header) + header_bytes_, bytes.data(), count);
      header_bytes_ += count;
      bytes = bytes.subspan(count);
      if (header_bytes_ < sizeof(FrameHeader)) return true;
      if (frame_.header.magic != FrameHeader::mark || frame_.header.bytes > most_bytes_) return false;
    } else {
      const std::size_t count = std::min<std::size_t>(frame_.header.bytes - frame_.data.size(), bytes.size());
      frame_.data.insert(frame_.data.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(count));
      bytes = bytes.subspan(count);
    }
    if (frame_.data.size() == frame_.header.bytes) end_frame();
  }
  return true;
}

void FrameParser::end_frame() {
  frame_.header.call.name.back() = '\0';
  frames_.push_back(std::exchange(frame_, {}));
  header_bytes_ = 0;
}

std::optional<Frame> FrameParser::next() {
  if (frames_.empty()) return std::nullopt;
  Frame frame = std::move(frames_.front());
  frames_.pop_front();
  return frame;
}

std::vector<std::byte> write_frame(FrameHeader header, std::span<const std::byte> data) {
  header.bytes = data.size();
  std::vector<std::byte> bytes(sizeof(header) + data.size());
  std::memcpy(bytes.data(), &header, sizeof(header));
  if (!data.empty()) std::memcpy(bytes.data() + sizeof(header), data.data(), data.size());
  return bytes;
}

bool FrameConnection::receive() {
  std::array<std::byte, std::size_t{64} << 10> buffer;
  for (;;) {
    const auto count = socket_.receive_now(buffer);
    if (!count) return false;
    if (*count == 0) return true;
    if (!parser_.add(std::span(buffer).first(*count))) return false;
    if (*count < buffer.size()) return true;
  }
}

void FrameConnection::send(const FrameHeader& header, std::span<const std::byte> data) {
  unsent_.push_back(write_frame(header, data));
  send_on();
}

// Ignores a closed connection, which receive() reports.
void FrameConnection::send_on() {
  while (!unsent_.empty()) {
    const auto count = socket_.send_now(std::span<const std::byte>(unsent_.front()).subspan(sent_));
    if (!count) unsent_.clear();
    if (!count || *count == 0) break;
    sent_ += *count;
    if (sent_ < unsent_.front().size()) continue;
    unsent_.pop_front();
    sent_ = 0;
  }
  if (unsent_.empty()) sent_ = 0;
}

bool send_frame(const Socket& socket, const FrameHeader& header, std::span<const std::byte> data) {
  return socket.send(write_frame(header, data));
}

}  // namespace trireme::comm
